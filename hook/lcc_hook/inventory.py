"""What Claude Code sends of a session file, kind by kind: the closed list.

Each kind of row, block and part has one fate here. What is not listed is unknown, and an unknown kind stops the
replacement: a kind that a later client adds is safe until someone has looked at it. The facts are from driving
client 2.1.332; a test writes the table in hook/README.md from these lists.

Plain data, read by ``unseen.py`` at each compaction. Runs on Python 3.8 and up.
"""

from __future__ import annotations

CARRIED = "carried"
"""The replacement shows it."""
AGAIN = "said again"
"""A notice that the client makes anew, with what holds by then, as soon as no row of the session holds it."""
LEFT = "left out"
"""Sent, and it cannot be sent again behind a changed history: the API binds it to what stood before it."""
NEVER = "never sent"
"""The client writes it down for itself."""
HANDED = "handed over"
"""Sent, and no text can show it: no replacement."""

ROWS = {
    "user": (CARRIED, "a prompt by its handle, with all that it holds; a row with results fresh, block by block"),
    "assistant": (CARRIED, "fresh, block by block; never sent: an API error"),
    "attachment": (CARRIED, "by its own kind"),
    "system": (CARRIED, "by its own kind"),
    "progress": (NEVER, "a step of a running tool"),
}
"""Rows by ``type``. A row without a uuid is a record beside the conversation, whatever its type: never sent."""

SYSTEM = {
    "local_command": (CARRIED, "what a slash command printed, word for word; never sent: what is for display alone"),
    "": (NEVER, "for the screen"),
    **dict.fromkeys(
        """
        agents_killed api_error api_metrics api_retry away_summary background_tasks_changed bridge_state
        bridge_status cloud_session_delta cloud_session_status code_change_published commands_changed
        compact_boundary control_request_progress dev_intent elicitation_complete feedback_draft_queued
        file_attachments_missing file_snapshot files_persisted hook_progress hook_response hook_started
        informational init instruction_size_warning late_allow_not_run memory_recall memory_saved
        microcompact_boundary mirror_error model_consent_fallback model_fallback model_refusal_fallback
        model_refusal_no_fallback notification peer_message_hold per_turn_effort_changed
        permission_check_status permission_denied permission_retry placed plugin_install post_turn_summary
        read_divider rewind_stand_in scheduled_task_fire session_metadata session_state_changed
        session_title_changed session_writes_lost shell_cwd start_folder status stop_hook_summary
        task_notification task_progress task_started task_summary task_updated thinking thinking_tokens
        tool_host_result turn_duration turn_preempted turn_starting vcs_state_changed voice_call_talk
        worker_shutting_down
        """.split(),
        (NEVER, "for the screen"),
    ),
}
"""``system`` rows by ``subtype``; the oldest clients wrote none."""

ASSISTANT = {
    "text": (CARRIED, "word for word; its citations as text behind it"),
    "tool_use": (CARRIED, "with its id and input"),
    "thinking": (LEFT, "bound to what stood before it"),
    "redacted_thinking": (LEFT, "bound to what stood before it"),
    **dict.fromkeys(["mcp_tool_use", "server_tool_use"], (CARRIED, "as text: the tool's name and its input")),
    **dict.fromkeys(
        """
        advisor_tool_result bash_code_execution_tool_result code_execution_tool_result mcp_tool_result
        text_editor_code_execution_tool_result tool_search_tool_result web_fetch_tool_result
        web_search_tool_result
        """.split(),
        (CARRIED, "as text, every field; handed over where the API alone can read it (`encrypted_…`, long)"),
    ),
}
"""Blocks of an assistant row."""

USER = {
    "tool_result": (CARRIED, "as the plan says; its parts below"),
    "text": (CARRIED, "word for word, behind the results of its row"),
    "image": (CARRIED, "a line that names a file with the very bytes"),
    "document": (CARRIED, "its text; a PDF as a line that names a file with the very bytes"),
    "search_result": (CARRIED, "its text, title and source"),
}
"""Blocks of a user row that holds results, of a row that the client wrote (``isMeta``), and of words typed mid-turn."""

PARTS = {
    "text": (CARRIED, "word for word"),
    "image": (CARRIED, "a line that names a file with the very bytes"),
    "document": (CARRIED, "its text; a PDF as a line that names a file with the very bytes"),
    "search_result": (CARRIED, "its text, title and source"),
    "resource": (CARRIED, "its text and address; bytes as a line that names a file"),
    "resource_link": (CARRIED, "its address, name and description"),
    "tool_reference": (CARRIED, "a line: the client unloads the tool, and it must be loaded again"),
}
"""Parts of a ``tool_result``."""

FIELDS = {
    "text": frozenset("type text citations cache_control".split()),
    "tool_use": frozenset("type id name input caller cache_control".split()),
    "tool_result": frozenset("type tool_use_id content is_error cache_control".split()),
    "image": frozenset("type source cache_control".split()),
    "document": frozenset("type source title context citations cache_control".split()),
    "search_result": frozenset("type source title content citations cache_control".split()),
    "tool_reference": frozenset("type tool_name".split()),
}
"""What blocks and parts hold of which single fields are looked at. Another field may hold something that is sent, so it
is unknown. Of kinds that are not here every field is shown, or nothing is sent."""

OLDER: dict[str, tuple[str, ...]] = {
    "agent_mention": ("The user wants this agent to be used", "agentType"),
    "async_hook_response": (
        "What a hook answered later",
        "response.systemMessage",
        "response.hookSpecificOutput.additionalContext",
    ),
    "at_mention_reference": ("The user mentioned these, and what they hold is not shown", "mentions"),
    "auto_mode": ("Auto mode is on: the work goes on without questions",),
    "auto_mode_exit": ("Auto mode was left: questions are welcome again",),
    "compact_file_reference": ("A file that was read before an earlier summary, too large to show", "filename"),
    "critical_system_reminder": ("A reminder that holds for the whole session", "content"),
    "date_change": ("The date has changed", "newDate"),
    "diagnostics": ("New diagnostics of files", "files"),
    "directory": ("A folder that the user mentioned, and what it holds", "path", "content"),
    "dynamic_skill": ("Skills that were found in a folder, ready for use", "skillDir", "skillNames"),
    "edited_text_file": (
        "A file that changed on disk since it was read, and the changed lines",
        "filename",
        "snippet",
    ),
    "file": ("A file that the user mentioned, and what it holds", "filename", "content", "truncated"),
    "hook_additional_context": ("Context from a hook", "hookName", "content"),
    "hook_blocking_error": ("An error of a hook, which blocked", "hookName", "blockingError"),
    "hook_stopped_continuation": ("A hook stopped the work", "hookName", "message"),
    "hook_success": ("What a hook printed", "hookName", "content"),
    "invoked_skills": ("Skills in use, whose guidelines go on holding; they are not to be run again", "skills"),
    "mcp_resource": ("What a resource of an MCP server holds", "content.contents.text"),
    "memory_update": ("The memory folder changed", "source", "summary", "paths"),
    "nested_memory": ("Rules of a folder that the work touches", "content.path", "content.content"),
    "opened_file_in_ide": ("The user opened this file in the editor", "filename"),
    "output_style": ("The style of answers that holds", "style"),
    "pdf_reference": ("A PDF that was mentioned, and what it holds is not shown", "filename", "pageCount"),
    "plan_file_reference": ("A plan that was made in plan mode", "planFilePath", "planContent"),
    "plan_mode": ("Plan mode is on: nothing may be changed, but for the plan's own file", "planFilePath"),
    "plan_mode_exit": ("Plan mode was left: changes are allowed again", "planFilePath"),
    "plan_mode_reentry": ("Plan mode is on again: see whether the plan in its file still fits", "planFilePath"),
    "relevant_memories": ("Memories that may matter here", "memories"),
    "selected_lines_in_diff": ("The user selected these lines of a diff", "filePath", "lineCount", "content"),
    "selected_lines_in_ide": (
        "The user selected these lines in the editor",
        "filename",
        "lineStart",
        "lineEnd",
        "content",
    ),
    "task_reminder": ("The list of tasks, as it stood then", "content"),
    "task_status": (
        "The state of a task in the background",
        "taskId",
        "taskType",
        "status",
        "description",
        "deltaSummary",
        "outputFilePath",
    ),
    "team_context": (
        "The team that this session works in",
        "agentName",
        "teamName",
        "teamConfigPath",
        "taskListPath",
    ),
    "teammate_mailbox": ("Messages of the team", "messages"),
    "ultrathink_effort": ("The user asks for deep thought",),
}
"""Attachments that older clients wrote without what was sent: the words that stand above them, and the fields that
the client sends. The current client words them anew at each request."""

ATTACHMENTS = {
    "queued_command": (
        CARRIED,
        "the user's words word for word, as the user's; reports and the like as they were sent",
    ),
    **dict.fromkeys(OLDER, (CARRIED, "as it was sent; from an older client, its fields under words of ours")),
    **dict.fromkeys(
        """
        agent_listing_delta batching_reminder_sent budget_usd date deferred_tools_delta environment
        mcp_dropped_tools_delta mcp_instructions_delta model output_token_usage progress_reminder_sent
        remote_session_change secondary_reminder_sent session_context skill_listing token_usage
        total_tokens_reminder
        """.split(),
        (AGAIN, "listings, the surroundings, and figures that a compaction makes false"),
    ),
    **dict.fromkeys(
        ["message_pdf_reads", "poll_events", "project_doc_reads"],
        (HANDED, "sent as calls that stand in no row"),
    ),
    **dict.fromkeys(
        """
        advisor_stripped already_read_file async_hook_response_batch attention_budget audio_transcript
        autocheckpointing background_task_status command_permissions companion_intro compaction_reminder
        context_efficiency context_tip credential_org current_session_memory deferred_tools_record
        echo_activities edited_image_file fold_nudge goal_status goals hook_cancelled hook_deferred_tool
        hook_error_during_execution hook_non_blocking_error hook_permission_decision hook_system_message
        instruction_files_not_loaded max_turns_reached pen_mode_enter pen_mode_exit projects_thread_ask
        prompt_as_file prompt_render_point prompt_snapshot session_cron_carry structured_output
        task_progress teammate_shutdown_batch thinking_drop thinking_reminder thinking_stripped todo
        tool_host_result_lines tool_offer_record tool_results_cut ultramemory ultrawork_request
        verify_plan_reminder whole_texts_withdrawn withheld_memory
        """.split(),
        (NEVER, "for the client itself"),
    ),
    **dict.fromkeys(
        """
        account_memory_recall advisor_tool agent_ask_notice artifact_opening_prefetch
        bash_output_audience_note batching_reminder claude_app_notice context_sections
        coordinator_context cowork_memory_context dir_sync_notice elapsed_time_reminder first_week
        fork_briefing inlined_image_paths instructions language linked_plugin_tools_note
        output_limit_note output_style_instructions peer_mention plugin_note prefix_delta proactivity
        read_truncation_notice repl_mcp_needs_auth repl_mcp_servers sandbox_instructions
        secondary_reminder silent_turn_reminder skill_mention thread_state todo_reminder tool_hosts_correction
        tool_hosts_notice tool_search_usage_reminder ultra_effort_enter ultra_effort_exit
        unknown_command_fallback widget_context_hint workflow_keyword_request
        workflow_size_guideline_change
        """.split(),
        (CARRIED, "as it was sent; where the row does not hold that, nothing was"),
    ),
}
"""Attachment rows by ``attachment.type``. One that holds what was sent (``rendered``) is carried whatever its kind."""

HOOKS_HEARD = ("SessionStart", "UserPromptSubmit", "UserPromptExpansion")
"""The events whose ``hook_success`` the client sends."""

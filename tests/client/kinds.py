"""One example of each kind of row and block that a session file holds, with a mark in every text that is sent.

A mark is ``MARK-<kind>-<field>``. What the client sends of each example was seen in its requests: test_every_kind.py
looks again.
"""

from __future__ import annotations

import base64
from typing import Any

from client.pictures import png

Block = dict[str, Any]


def mark(kind: str, field: str = "text") -> str:
    return f"MARK-{kind}-{field}"


OLDER: dict[str, Block] = {
    "agent_mention": {"agentType": mark("agent_mention")},
    "async_hook_response": {
        "hookName": "PostToolUse",
        "hookEvent": "PostToolUse",
        "processId": "1",
        "response": {
            "systemMessage": mark("async_hook_response", "message"),
            "hookSpecificOutput": {"additionalContext": mark("async_hook_response", "context")},
        },
        "stdout": "UNSENT",
        "stderr": "",
    },
    "at_mention_reference": {"mentions": [mark("at_mention_reference")]},
    "auto_mode": {"reminderType": "full"},
    "auto_mode_exit": {},
    "compact_file_reference": {"filename": mark("compact_file_reference"), "displayPath": "UNSENT"},
    "critical_system_reminder": {"content": mark("critical_system_reminder")},
    "date_change": {"newDate": mark("date_change")},
    "diagnostics": {
        "files": [
            {
                "uri": f"file:///{mark('diagnostics', 'uri')}",
                "diagnostics": [
                    {
                        "message": mark("diagnostics"),
                        "severity": "Error",
                        "range": {"start": {"line": 3, "character": 4}, "end": {"line": 3, "character": 9}},
                    }
                ],
            }
        ],
        "isNew": True,
    },
    "directory": {"path": mark("directory", "path"), "content": mark("directory"), "displayPath": "UNSENT"},
    "edited_text_file": {"filename": mark("edited_text_file", "name"), "snippet": f"1\t{mark('edited_text_file')}"},
    "file": {
        "filename": mark("file", "name"),
        "content": {
            "type": "text",
            "file": {
                "filePath": "/p/a",
                "content": mark("file"),
                "numLines": 1,
                "startLine": 1,
                "totalLines": 1,
            },
        },
        "displayPath": "UNSENT",
    },
    "hook_additional_context": {
        "content": [mark("hook_additional_context", "one"), mark("hook_additional_context", "two")],
        "hookName": "PostToolUse:Bash",
        "toolUseID": "UNSENT",
        "hookEvent": "PostToolUse",
    },
    "hook_blocking_error": {
        "hookName": "PostToolUse:Bash",
        "hookEvent": "PostToolUse",
        "toolUseID": "UNSENT",
        "blockingError": {"blockingError": mark("hook_blocking_error"), "command": mark("hook_blocking_error", "by")},
    },
    "hook_stopped_continuation": {
        "hookName": "Stop",
        "hookEvent": "Stop",
        "toolUseID": "UNSENT",
        "message": mark("hook_stopped_continuation"),
    },
    "hook_success": {
        "hookName": "UserPromptSubmit",
        "hookEvent": "UserPromptSubmit",
        "toolUseID": "UNSENT",
        "content": mark("hook_success"),
        "stdout": "UNSENT",
        "stderr": "",
        "exitCode": 0,
    },
    "invoked_skills": {
        "skills": [{"name": mark("invoked_skills", "name"), "path": "/s", "content": mark("invoked_skills")}]
    },
    "mcp_resource": {
        "server": "s",
        "uri": "UNSENT",
        "name": "UNSENT",
        "content": {"contents": [{"uri": "UNSENT", "text": mark("mcp_resource")}]},
    },
    "memory_update": {"source": "dream", "summary": mark("memory_update"), "paths": [mark("memory_update", "path")]},
    "nested_memory": {
        "path": "/p/CLAUDE.md",
        "content": {
            "path": mark("nested_memory", "path"),
            "type": "Project",
            "content": f"# Rules\n\n- {mark('nested_memory')}",
        },
        "displayPath": "UNSENT",
    },
    "opened_file_in_ide": {"filename": mark("opened_file_in_ide")},
    "output_style": {"style": mark("output_style")},
    "pdf_reference": {"filename": mark("pdf_reference"), "pageCount": 40, "fileSize": 5, "displayPath": "UNSENT"},
    "plan_file_reference": {
        "planFilePath": mark("plan_file_reference", "path"),
        "planContent": mark("plan_file_reference"),
    },
    "plan_mode": {
        "reminderType": "full",
        "isSubAgent": False,
        "planFilePath": mark("plan_mode"),
        "planExists": True,
    },
    "plan_mode_exit": {"planFilePath": mark("plan_mode_exit"), "planExists": True},
    "plan_mode_reentry": {"planFilePath": mark("plan_mode_reentry")},
    "relevant_memories": {
        "memories": [{"path": mark("relevant_memories", "path"), "content": mark("relevant_memories"), "mtimeMs": 1}]
    },
    "selected_lines_in_diff": {"filePath": "/p/a", "lineCount": 2, "content": mark("selected_lines_in_diff")},
    "selected_lines_in_ide": {
        "filename": mark("selected_lines_in_ide", "name"),
        "lineStart": 1,
        "lineEnd": 2,
        "content": mark("selected_lines_in_ide"),
        "displayPath": "UNSENT",
    },
    "task_reminder": {
        "content": [{"id": "1", "status": "pending", "subject": mark("task_reminder")}],
        "itemCount": 1,
    },
    "task_status": {
        "taskId": mark("task_status", "id"),
        "taskType": "local_agent",
        "status": "completed",
        "description": mark("task_status"),
        "deltaSummary": mark("task_status", "delta"),
    },
    "ultrathink_effort": {"level": "high"},
}
"""Attachments without ``rendered``, as clients up to 2.1.209 wrote them: the fields."""

ELSEWHERE: dict[str, Block] = {
    "dynamic_skill": {"skillDir": "/p/skills", "skillNames": [mark("dynamic_skill")], "displayPath": "UNSENT"},
    "team_context": {
        "agentId": "UNSENT",
        "agentName": mark("team_context"),
        "teamName": "t",
        "teamConfigPath": mark("team_context", "config"),
        "taskListPath": mark("team_context", "tasks"),
    },
    "teammate_mailbox": {"messages": [{"from": "b", "text": mark("teammate_mailbox"), "timestamp": "t"}]},
}
"""Those that the client sends only where a team is at work, or from a folder of the project's."""

SERVER_TOOLS: dict[str, Block] = {
    "server_tool_use": {"id": "srv_1", "name": "web_search", "input": {"query": mark("server_tool_use")}},
    "web_search_tool_result": {
        "tool_use_id": "srv_1",
        "content": [
            {
                "type": "web_search_result",
                "title": mark("web_search_tool_result", "title"),
                "url": mark("web_search_tool_result", "url"),
                "encrypted_content": mark("web_search_tool_result", "short"),
                "page_age": None,
            }
        ],
    },
    "web_fetch_tool_result": {
        "tool_use_id": "srv_2",
        "content": {
            "type": "web_fetch_result",
            "url": mark("web_fetch_tool_result", "url"),
            "content": {
                "type": "document",
                "title": mark("web_fetch_tool_result", "title"),
                "source": {"type": "text", "media_type": "text/plain", "data": mark("web_fetch_tool_result")},
            },
        },
    },
    "code_execution_tool_result": {
        "tool_use_id": "srv_3",
        "content": {
            "type": "code_execution_result",
            "stdout": mark("code_execution_tool_result"),
            "stderr": mark("code_execution_tool_result", "stderr"),
            "return_code": 0,
            "content": [],
        },
    },
    "bash_code_execution_tool_result": {
        "tool_use_id": "srv_4",
        "content": {"type": "bash_code_execution_result", "stdout": mark("bash_code_execution_tool_result")},
    },
    "text_editor_code_execution_tool_result": {
        "tool_use_id": "srv_5",
        "content": {"type": "text_editor_view_result", "content": mark("text_editor_code_execution_tool_result")},
    },
    "tool_search_tool_result": {
        "tool_use_id": "srv_6",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": mark("tool_search_tool_result")}],
        },
    },
    "advisor_tool_result": {
        "tool_use_id": "srv_7",
        "content": {"type": "advisor_result", "text": mark("advisor_tool_result")},
    },
    "mcp_tool_use": {
        "id": "mcp_1",
        "server_name": mark("mcp_tool_use", "server"),
        "name": "look",
        "input": {"deep": {"er": [mark("mcp_tool_use")]}},
    },
    "mcp_tool_result": {
        "tool_use_id": "mcp_1",
        "is_error": False,
        "content": [{"type": "text", "text": mark("mcp_tool_result")}],
    },
}
"""Blocks of tools that the API runs."""

PICTURE: Block = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()},
}
DOCUMENT: Block = {
    "type": "document",
    "title": mark("document", "title"),
    "source": {"type": "text", "media_type": "text/plain", "data": mark("document")},
}
SEARCH_RESULT: Block = {
    "type": "search_result",
    "source": mark("search_result", "source"),
    "title": mark("search_result", "title"),
    "content": [{"type": "text", "text": mark("search_result")}],
}
PARTS: dict[str, Block] = {
    "document": DOCUMENT,
    "search_result": SEARCH_RESULT,
    "resource": {"type": "resource", "resource": {"uri": mark("resource", "uri"), "text": mark("resource")}},
    "resource_link": {
        "type": "resource_link",
        "uri": mark("resource_link", "uri"),
        "name": mark("resource_link", "name"),
        "description": mark("resource_link"),
    },
    "tool_reference": {"type": "tool_reference", "tool_name": mark("tool_reference")},
}
"""Parts of a result that are neither text nor bytes."""

"""What a session file holds that the session.compact event does not show, and a replacement would lose.

Run as ``python3 -I -S -E unseen.py`` by the module, ahead of the hook client. The event leaves out rows that hang
on calls and results, blocks of the assistant that are no text and no call, and every part of a result that is no
text. This program compares the live branch of the session file, row by row and block by block, with what the event
shows. Each kind stands in ``inventory.py``; one that does not is unknown and means: do not replace.

stdin, JSON: ``{"transcript", "agent_id", "prompts": [uuid], "others": [uuid], "last": uuid, "reads": {id: path}}``,
and from the module ``"first": uuid``, ``"worded": [uuid]``, ``"calls": [id]``, ``"results": [id]``. ``prompts`` are the
messages whose handle is kept: what hangs on them, and every block of theirs, comes back by itself. ``first`` and
``last`` are the oldest and the newest message, ``worded`` those of the others that show a text.
stdout, JSON: ``{"texts": [{"after", "text"}], "lines": {id: line}, "unsent": [uuid], "lost": [what]}``. ``texts`` go
back as messages (``after`` is empty at the front), a line goes below the text of its result, ``unsent`` are messages
that the client shows and never sends, and anything in ``lost`` means: do not replace.

Standard library only, and nothing imported that is not used: its start is most of its cost. Runs on Python 3.8
and up.
"""

from __future__ import annotations

import json
import os
import re
import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__.rpartition("/lcc_hook/")[0] or "..")
    sys.dont_write_bytecode = True

from lcc_hook.inventory import (
    ASSISTANT,
    ATTACHMENTS,
    CARRIED,
    FIELDS,
    HANDED,
    HOOKS_HEARD,
    LEFT,
    OLDER,
    PARTS,
    ROWS,
    SYSTEM,
    USER,
)
from lcc_hook.live_branch import Branch, is_unsent, read_when_written, session_file
from lcc_hook.wording import OpaqueError, field_at, is_reminder, reminder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lcc_hook.live_branch import Json, Row

SAVED_IMAGE = re.compile(r"\[Image: source: ([^\]\n]+)\]")
WRITTEN_BY_THE_CLIENT = ("<system-reminder>", "<local-command-", "<command-", "<bash-", "<task-notification>")
"""How texts begin that say themselves that the user did not type them."""


class Asked:
    """The question from stdin. Raises KeyError and TypeError for one that is none."""

    def __init__(self, value: Json) -> None:
        if not isinstance(value, dict):
            raise TypeError("the question is no object")
        transcript, agent, last, reads = (value[key] for key in ("transcript", "agent_id", "last", "reads"))
        if not isinstance(transcript, str) or not isinstance(last, str) or not isinstance(reads, dict):
            raise TypeError("the question has a field of another type")
        self.transcript = transcript
        self.agent = agent if isinstance(agent, str) else None
        self.last = last
        self.reads = {key: path for key, path in reads.items() if isinstance(path, str)}
        self.prompts = strings(value["prompts"])
        self.others = strings(value["others"])
        first = value.get("first")
        self.first = first if isinstance(first, str) else next(iter(self.prompts), "")
        self.shows = {key: frozenset(strings(value[key])) for key in ("worded", "calls", "results") if key in value}


class Found:
    """What the replacement must add, what it must leave out, and what it cannot show."""

    def __init__(self, asked: Asked) -> None:
        self.copies = os.path.join(os.path.splitext(asked.transcript)[0], "tool-results")
        self.reads = asked.reads
        self.shows = asked.shows
        self.texts: list[dict[str, str]] = []
        self.lines: dict[str, str] = {}
        self.unsent: list[str] = []
        self.lost: list[str] = []

    def say(self, after: str, text: str) -> None:
        """Add a message behind the message ``after``."""
        if text.strip():
            self.texts.append({"after": after, "text": text})

    def keep(self, source: Row) -> str:
        """The line that names a copy of a source's bytes. Raises OpaqueError where none can be kept."""
        from lcc_hook.copies import bytes_of, keep_copy, media_type

        media = media_type(source)
        try:
            return again(media.partition("/")[0], keep_copy(self.copies, bytes_of(source), media))
        except (OSError, LookupError) as error:
            raise OpaqueError(f"no copy of it could be kept ({error})") from None

    def expect(self, where: str, key: str, name: str) -> None:
        """Note as lost what the event should show and does not."""
        if key in self.shows and name not in self.shows[key]:
            self.lost.append(f"{where} that the client did not show")


def strings(value: Json) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("the question has no list where one belongs")
    return [each for each in value if isinstance(each, str)]


def again(kind: str, path: str) -> str:
    return f"[{kind} no longer in context: read {path} to see it again]"


def find(data: bytes, asked: Asked) -> Found:
    """Everything that the event does not show of what the client would send, in the conversation's order.

    The folder for copies is made and written to only where something must be kept there.
    """
    found = Found(asked)
    branch = Branch(data, [*asked.prompts, *asked.others], asked.first, [*asked.prompts[:2], *asked.others[:2]])
    if branch.missing:
        found.lost.append("a message that the session file does not hold")
    comes_back = frozenset(asked.prompts)
    for row in branch.lost():
        if not is_idle(row, found):
            found.lost.append(f"a message ({row.get('type')}) that the client did not show")
    unshown: dict[str, list[Row]] = {}
    for anchor, row in branch.unshown():
        if anchor not in comes_back and not (anchor == "" and asked.first in comes_back):
            unshown.setdefault(anchor, []).append(row)
    for row in unshown.pop("", []):
        add_row(found, "", row)
    for uuid, row in branch.rows.items():
        if uuid in branch.shown:
            if is_unsent(row):
                found.unsent.append(uuid)
            elif uuid not in comes_back:
                add_blocks(found, uuid, row)
            for hidden in unshown.pop(uuid, []):
                add_row(found, uuid, hidden)
    return found


def is_idle(row: Row, found: Found) -> bool:
    """Whether a message holds nothing that the client sends of it: thinking, calls that were never answered, and
    results that stand elsewhere."""
    content = field_at(row.get("message"), "content")
    if isinstance(content, str):
        return not content.strip()
    for block in content if isinstance(content, list) else []:
        kind, known = field_at(block, "type"), found.shows.get("results", frozenset())
        if kind == "tool_use":
            if field_at(block, "id") in known:
                return False
        elif kind == "tool_result":
            if field_at(block, "tool_use_id") not in known:
                return False
        elif kind == "text":
            if str(field_at(block, "text") or "").strip():
                return False
        elif ASSISTANT.get(str(kind), ("",))[0] != LEFT:
            return False
    return True


# ---------------------------------------------------------------- rows that the event does not show


def add_row(found: Found, after: str, row: Row) -> None:
    """One row behind the message ``after``: its words, or that it would be lost."""
    kind = str(row.get("type"))
    if row.get("isVirtual") is True or is_unsent(row):
        return
    if kind == "attachment":
        add_attachment(found, after, row)
    elif kind == "system":
        subtype = str(row.get("subtype") or "")
        if subtype not in SYSTEM:
            found.lost.append(f"a row of a kind that is not known (system/{subtype})")
        elif SYSTEM[subtype][0] == CARRIED and row.get("isDisplayOnly") is not True:
            found.say(after, str(row.get("content") or ""))
    elif kind == "user":
        text = "\n".join(words_of_blocks(found, field_at(row.get("message"), "content"), "a row of the client's own"))
        found.say(after, text if not text.strip() or text.startswith(WRITTEN_BY_THE_CLIENT) else reminder(text))
    elif kind not in ROWS:
        found.lost.append(f"a row of a kind that is not known ({kind})")


def add_attachment(found: Found, after: str, row: Row) -> None:
    """An attachment, as it was sent where the row says so, else in our words."""
    attachment = row.get("attachment")
    kind = str(field_at(attachment, "type"))
    fate = ATTACHMENTS.get(kind, ("",))[0]
    sent = sent_texts(row)
    if not isinstance(attachment, dict) or fate == HANDED or (not fate and not sent):
        found.lost.append(
            f"a row of a kind that is not known (attachment/{kind})" if not fate else f"{kind}: no row has it"
        )
    elif kind == "queued_command":
        add_queued(found, after, attachment, sent)
    elif fate in ("", CARRIED):
        if sent:
            for text in sent:
                found.say(after, text if is_reminder(text) else reminder(text))
        elif row.get("renderedRole") is not None and kind != "file":
            found.lost.append(f"an attachment ({kind}) that was sent as more than text")
        else:
            found.say(after, older_words(found, attachment, kind))


def older_words(found: Found, attachment: Row, kind: str) -> str:
    from lcc_hook.wording import words_of_attachment

    if kind not in OLDER or (kind == "hook_success" and attachment.get("hookEvent") not in HOOKS_HEARD):
        return ""
    try:
        return words_of_attachment(attachment, found.keep)
    except OpaqueError as error:
        found.lost.append(f"an attachment ({kind}): {error}")
        return ""


def sent_texts(row: Row) -> list[str]:
    """What an attachment was sent as, where its row says so: each text."""
    rendered = row.get("rendered")
    texts: list[str] = []
    for part in rendered if isinstance(rendered, list) else []:
        content = field_at(part, "content")
        parts: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else []
        for each in content if isinstance(content, list) else parts:
            text = field_at(each, "text")
            if isinstance(text, str):
                texts.append(text)
    return texts


def add_queued(found: Found, after: str, attachment: Row, sent: list[str]) -> None:
    """What came while the agent worked. The user's words go back as the user's, and what came with them behind."""
    if attachment.get("renderedByBatchHead"):
        return
    origin = field_at(attachment.get("origin"), "kind")
    is_typed = (
        attachment.get("commandMode") in (None, "prompt", "bash")
        and attachment.get("isMeta") is not True
        and origin in (None, "human")
        and not attachment.get("batchedRelayPrompts")
    )
    words = "\n".join(words_of_blocks(found, attachment.get("prompt"), "what came while the agent worked"))
    is_report = attachment.get("commandMode") == "task-notification"
    if is_typed or is_report or not sent:
        typed = field_texts(attachment.get("prompt"))
        found.say(after, words if is_typed or words.startswith(WRITTEN_BY_THE_CLIENT) else reminder(words))
        sent = [text for text in sent if len(sent) > 1 and typed not in text]
    for text in sent:
        found.say(after, text if is_reminder(text) else reminder(text))


def field_texts(content: Json) -> str:
    """The texts of a message's content, joined as the client joins them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(field_at(part, "text")) for part in parts if field_at(part, "type") == "text")


# ---------------------------------------------------------------- blocks of rows that the event shows


def add_blocks(found: Found, uuid: str, row: Row) -> None:
    """The blocks of a shown row: what the event shows of them is expected there, the rest is found or lost."""
    blocks = blocks_of(found, field_at(row.get("message"), "content"), "a message")
    is_assistant = row.get("type") == "assistant"
    tools: list[str] = []
    for block in blocks:
        kind = str(field_at(block, "type"))
        if not isinstance(block, dict) or kind not in (ASSISTANT if is_assistant else USER):
            found.lost.append(f"a block of a kind that is not known ({kind})")
        elif has_strange_field(found, block):
            continue
        elif kind == "text":
            if str(block.get("text") or "").strip():
                found.expect("a text", "worded", uuid)
            if block.get("citations"):
                tools.append(server_tool(found, block))
        elif kind == "tool_use":
            found.expect("a call", "calls", str(block.get("id")))
        elif kind == "tool_result":
            found.expect("a result", "results", str(block.get("tool_use_id")))
            add_parts(found, block)
        elif is_assistant and ASSISTANT[kind][0] == CARRIED:
            tools.append(server_tool(found, block))
        elif not is_assistant:
            for text in words_of_blocks(found, [block], "what stands beside a result"):
                found.say(uuid, reminder(text))
    if any(tools):
        found.say(uuid, reminder("\n".join(text for text in tools if text)))


def server_tool(found: Found, block: Row) -> str:
    from lcc_hook.wording import words_of_citations, words_of_server_tool

    try:
        if block["type"] == "text":
            return words_of_citations(block["citations"], found.keep)
        return words_of_server_tool(block, found.keep)
    except OpaqueError as error:
        found.lost.append(f"a block ({block['type']}) with {error}")
        return ""


def add_parts(found: Found, block: Row) -> None:
    """For a result with parts that are no text: the lines that say what they hold, or how to have them back."""
    content = blocks_of(found, block.get("content"), "a result")
    if any(has_strange_field(found, part) for part in content if isinstance(part, dict)):
        return
    if all(field_at(part, "type") == "text" for part in content):
        return
    call_id = str(block.get("tool_use_id"))
    parts = [part for part in content if field_at(part, "type") != "text"]
    tools = [str(field_at(part, "tool_name")) for part in parts if field_at(part, "type") == "tool_reference"]
    lines = []
    if tools:
        lines.append(f"[loaded here, to be loaded again with ToolSearch before use: {', '.join(tools)}]")
    others = [part for part in parts if field_at(part, "type") != "tool_reference"]
    if others and not names_copies(field_texts(content), others):
        read = found.reads.get(call_id)
        for part in others:
            kind = str(field_at(part, "type"))
            if kind not in PARTS:
                found.lost.append(f"a part of a result of a kind that is not known ({kind})")
            elif isinstance(part, dict):
                is_its_own = read is not None and len(others) == 1
                lines += words_of_part(found, part, f"the result of {call_id}", read if is_its_own else None)
    if lines:
        found.lines[call_id] = "\n".join(lines)


def names_copies(text: str, parts: list[Json]) -> bool:
    """Whether the result's own text names the copies that the client saved of its pictures, and they are there."""
    paths = SAVED_IMAGE.findall(text)
    if len(paths) != len(parts):
        return False
    from lcc_hook.copies import bytes_of, holds

    sources = [field_at(part, "source") for part in parts]
    return all(map(holds, paths, (bytes_of(source) if isinstance(source, dict) else b"" for source in sources)))


def blocks_of(found: Found, content: Json, where: str) -> list[Json]:
    """A content's blocks; a text alone is one. Anything but a list, a text or nothing is of an unknown shape."""
    if isinstance(content, list):
        return content
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is not None:
        found.lost.append(f"{where} with a content of an unknown shape")
    return []


def has_strange_field(found: Found, block: Row) -> bool:
    """Whether a block has a field that its kind is not known to have: noted as lost, for it may be sent."""
    kind = str(block.get("type"))
    strange = sorted(block.keys() - FIELDS[kind]) if kind in FIELDS else []
    if strange:
        found.lost.append(f"a field that is not known ({kind}.{strange[0]})")
    return bool(strange)


def words_of_blocks(found: Found, content: Json, where: str) -> list[str]:
    """A message's content as texts, block by block."""
    texts: list[str] = []
    for block in blocks_of(found, content, where):
        kind = str(field_at(block, "type"))
        if not isinstance(block, dict) or kind not in USER or kind == "tool_result":
            found.lost.append(f"a block of a kind that is not known ({kind}) in {where}")
        elif has_strange_field(found, block):
            continue
        elif kind == "text":
            texts.append(str(block.get("text") or ""))
        else:
            texts += words_of_part(found, block, where)
    return texts


def words_of_part(found: Found, part: Row, where: str, read: str | None = None) -> list[str]:
    """The line for one picture, document, search result or resource. ``read`` is the file that it came from."""
    from lcc_hook.wording import spell, words_of_document, words_of_search_result

    kind = str(part["type"])
    source = part.get("source")
    try:
        if isinstance(source, dict) and source.get("type") == "base64":
            from lcc_hook.copies import bytes_of, holds

            if read is not None and "\n" not in read and holds(read, bytes_of(source)):
                return [again(kind, read)]
            line = found.keep(source)
            about = {key: part[key] for key in ("title", "context") if part.get(key)}
            return [line, *spell(about, found.keep)]
        if kind == "document":
            return [words_of_document(part, found.keep)]
        if kind == "search_result":
            return [words_of_search_result(part, found.keep)]
        if kind in ("resource", "resource_link"):
            return ["\n".join([f"[{kind.replace('_', ' ')}]", *spell(part, found.keep)])]
        raise OpaqueError(f"its source is of another kind ({field_at(source, 'type')})")
    except OpaqueError as error:
        found.lost.append(f"a part ({kind}) of {where}: {error}")
        return []


def main() -> int:
    """Answer one question from stdin. Exit code 1, and the reason on stderr, where the file does not tell."""
    try:
        asked = Asked(json.loads(sys.stdin.buffer.read()))
    except (KeyError, TypeError, ValueError) as error:
        print(f"a question of an unknown shape ({error!r})", file=sys.stderr)
        return 1
    try:
        data = read_when_written(session_file(asked.transcript, asked.agent), asked.last)
    except (OSError, OverflowError, ValueError) as error:
        print(f"what the event hides cannot be found: {error}", file=sys.stderr)
        return 1
    try:
        found = find(data, asked)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        found = Found(asked)
        found.lost.append(f"what a row of an unknown shape holds ({error!r})")
    answer = {"texts": found.texts, "lines": found.lines, "unsent": found.unsent, "lost": found.lost}
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())

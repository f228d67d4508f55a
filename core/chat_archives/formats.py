"""Chats of ChatGPT, Claude, Open WebUI and LM Studio as message trees.

None of the four documents its format, and all of them change: a field that is missing or of another type is
treated as absent, and everything that Draftlight cannot keep is counted in `ArchivedChat.lost`.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from core.chat_archives.tree import Node
from core.events import Attachment
from core.events.wire import well_formed

Lost = Literal[
    "images",
    "recordings",
    "files",
    "tools",
    "instructions",
    "versions",
    "branches",
    "characters",
    "messages",
    "chats",
]

_IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp", ".svg", ".tiff")
# Times before 1990 and after 2200 are errors.
_FIRST_S, _LAST_S = 631_152_000, 7_258_118_400
_TITLE_CHARACTERS = 300


class ArchivedChat(Struct):
    """A conversation. `created_s` is a Unix time; `system` is its system prompt."""

    source: str
    id: str = ""
    title: str = ""
    created_s: float | None = None
    archived: bool = False
    pinned: bool = False
    system: str = ""
    current: str = ""
    nodes: list[Node] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)


def read_chat(raw: Any) -> ArchivedChat | None:
    """Returns the conversation, whose format is recognised by its fields; None if it is not a chat."""
    if not isinstance(raw, dict):
        return None
    for recognises, read in _READERS:
        if recognises(raw):
            chat: ArchivedChat = read(raw)
            _finish(chat, raw)
            return chat
    return None


def _finish(chat: ArchivedChat, raw: dict[str, Any]) -> None:
    """Makes ids unique and texts storable."""
    if not chat.id:
        chat.id = hashlib.sha256(json.dumps(raw, default=str).encode()).hexdigest()
    chat.title = " ".join(_clean(chat.title).split())[:_TITLE_CHARACTERS]
    chat.system = _clean(chat.system).strip()
    taken: set[str] = set()
    for place, node in enumerate(chat.nodes):
        if node.id in taken:
            node.id = f"{node.id}\0{place}"
        taken.add(node.id)
        node.text, node.thought = _clean(node.text).strip("\n"), _clean(node.thought).strip()
        node.attachments = tuple(
            Attachment(_clean(each.name).strip() or "Attachment", _clean(each.text))
            for each in node.attachments
        )
    if chat.created_s is None:
        chat.created_s = next((node.time_s for node in chat.nodes if node.time_s is not None), None)


# ---- ChatGPT

# Marks of citations and links in the text, from Unicode's private use area.
_MARKED = re.compile("\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue206]")
_MOST_REFERENCES = 1_000


def _chatgpt(raw: dict[str, Any]) -> ArchivedChat:
    chat = ArchivedChat(
        "ChatGPT",
        _text(raw.get("conversation_id")) or _text(raw.get("id")),
        _text(raw.get("title")),
        _time(raw.get("create_time")),
        raw.get("is_archived") is True,
        raw.get("is_starred") is True,
        current=_text(raw.get("current_node")),
    )
    for name, each in raw["mapping"].items():
        entry = _dict(each)
        node = Node(name, _text(entry.get("parent")), "none")
        chat.nodes.append(node)
        if message := _dict(entry.get("message")):
            _chatgpt_message(message, node, chat.lost)
    return chat


def _chatgpt_message(message: dict[str, Any], node: Node, lost: Counter[str]) -> None:
    author, content = _text(_dict(message.get("author")).get("role")), _dict(message.get("content"))
    metadata, kind = _dict(message.get("metadata")), _text(content.get("content_type"))
    node.time_s = _time(message.get("create_time"))
    if kind in ("user_editable_context", "model_editable_context"):
        lost["instructions"] += 1
        return
    if author == "system" or metadata.get("is_visually_hidden_from_conversation") is True:
        return
    node.role = "user" if author == "user" else "answer"
    recipient = _text(message.get("recipient")) or "all"
    if kind == "thoughts":
        thoughts = [_dict(each) for each in _list(content.get("thoughts"))]
        node.thought = "\n\n".join(
            text
            for each in thoughts
            for text in (_text(each.get("summary")), _text(each.get("content")))
            if text
        )
    elif kind == "reasoning_recap":
        pass  # “Thought for 12 seconds”
    elif kind in ("text", "multimodal_text"):
        parts = _chatgpt_parts(content, lost)
        if author == "tool":
            # A tool's words are not the answer, but the images that it made are part of it.
            images = [part for part in parts if part == _marker("Image")]
            lost["tools"] += len(parts) > len(images)
            parts = images
        elif recipient.startswith("canmore."):
            parts = _canvas("\n".join(parts), lost)
        elif recipient != "all" and author != "user":
            lost["tools"] += 1
            parts = []
        node.text = "\n\n".join(parts) if kind == "multimodal_text" else "\n".join(parts)
    elif kind == "code" and author != "tool" and recipient in ("all", "python"):
        node.text = _fenced(_text(content.get("text")), _text(content.get("language")))
    elif author == "tool" or recipient != "all" or kind in ("code", "tether_quote", "system_error"):
        lost["tools"] += 1
    elif text := _text(content.get("text")) or "\n".join(_chatgpt_parts(content, lost)):
        node.text = text
    elif content:
        lost["messages"] += 1
    for reference in map(_dict, _list(metadata.get("content_references"))[:_MOST_REFERENCES]):
        marked, instead = _text(reference.get("matched_text")), _text(reference.get("alt"))
        if "\ue200" in marked:
            node.text = node.text.replace(marked, instead)
    if "\ue200" in node.text:
        node.text = _MARKED.sub("", node.text)
    files = []
    for each in map(_dict, _list(metadata.get("attachments"))):
        name = _text(each.get("name"))
        mime = _text(each.get("mimeType")) or _text(each.get("mime_type"))
        if not mime.startswith("image/") and not name.lower().endswith(_IMAGE_ENDINGS):
            lost["files"] += 1
            files.append(_marker("File", name))
    node.text = "\n\n".join(text for text in (*files, node.text) if text)


def _chatgpt_parts(content: dict[str, Any], lost: Counter[str]) -> list[str]:
    texts = []
    for part in _list(content.get("parts")):
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = _text(_dict(part).get("content_type"))
        if kind == "image_asset_pointer":
            lost["images"] += 1
            texts.append(_marker("Image"))
        elif kind == "audio_transcription":
            texts.append(_text(part.get("text")))
        elif "audio" in kind or "video" in kind:
            lost["recordings"] += 1
        elif text := _text(_dict(part).get("text")):
            texts.append(text)
        else:
            lost["messages"] += 1
    return texts


def _canvas(source: str, lost: Counter[str]) -> list[str]:
    """A document of the canvas, which is written by a tool call."""
    try:
        made = _dict(json.loads(source))
    except (ValueError, RecursionError):
        made = {}
    text, kind = _text(made.get("content")), _text(made.get("type"))
    if not text:
        lost["tools"] += 1
        return []
    body = _fenced(text, kind.partition("/")[2]) if kind.startswith("code") else text
    return [f"**{_text(made.get('name')) or 'Canvas'}**\n\n{body}"]


# ---- Claude

_ARTIFACT = re.compile(r"<antArtifact\b([^<>]*)>(.*?)</antArtifact>", re.S)
_ARTIFACT_THOUGHT = re.compile(r"<antThinking>(.*?)</antThinking>", re.S)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def _claude(raw: dict[str, Any]) -> ArchivedChat:
    chat = ArchivedChat(
        "Claude",
        _text(raw.get("uuid")),
        _text(raw.get("name")),
        _time(raw.get("created_at")),
        pinned=raw.get("is_starred") is True,
        current=_text(raw.get("current_leaf_message_uuid")),
    )
    messages = [_dict(each) for each in raw["chat_messages"]]
    names = {_text(each.get("uuid")) for each in messages}
    # Older exports have no parents: their messages are in order.
    is_tree = any(_text(each.get("parent_message_uuid")) in names for each in messages)
    before = ""
    for place, message in enumerate(messages):
        name = _text(message.get("uuid")) or f"message {place}"
        parent = _text(message.get("parent_message_uuid")) if is_tree else before
        sender = _text(message.get("sender")) or _text(message.get("role"))
        node = Node(name, parent, "user" if sender in ("human", "user") else "answer")
        node.time_s = _time(message.get("created_at"))
        _claude_content(message, node, chat.lost)
        chat.nodes.append(node)
        before = name
    if not chat.current and chat.nodes:
        chat.current = chat.nodes[-1].id
    return chat


def _claude_content(message: dict[str, Any], node: Node, lost: Counter[str]) -> None:
    texts, thoughts = [], []
    for block in map(_dict, _list(message.get("content"))):
        kind = _text(block.get("type"))
        if kind == "text":
            texts.append(_text(block.get("text")))
        elif kind == "thinking":
            thoughts.append(_text(block.get("thinking")))
        elif kind == "tool_use":
            texts += _claude_tool(block, lost)
        elif kind == "image":
            lost["images"] += 1
            texts.append(_marker("Image"))
        elif kind == "tool_result" or "tool" in kind:
            lost["tools"] += 1
        elif text := _text(block.get("text")):
            texts.append(text)
        elif kind not in ("token_budget", ""):
            lost["messages"] += 1
    text = "\n\n".join(each for each in texts if each.strip()) or _text(message.get("text"))

    def without(found: re.Match[str]) -> str:
        thoughts.append(found[1])
        return ""

    text = _replaced(_ARTIFACT_THOUGHT, "</antThinking>", without, text)
    node.text = _replaced(_ARTIFACT, "</antArtifact>", _artifact, text)
    node.thought = "\n\n".join(each.strip() for each in thoughts if each.strip())
    kept, markers = [], []
    seen = set()
    for each in map(_dict, (*_list(message.get("attachments")), *_list(message.get("files")))):
        name, inside = _text(each.get("file_name")), _text(each.get("extracted_content"))
        if inside:
            kept.append(Attachment(name or "Pasted text", inside))
            seen.add(name)
        elif name not in seen:
            seen.add(name)
            markers.append(_lost_file(name, lost))
    node.attachments = tuple(kept)
    node.text = "\n\n".join(each for each in (*markers, node.text) if each)


def _claude_tool(block: dict[str, Any], lost: Counter[str]) -> list[str]:
    """The documents and programs that Claude writes by tool calls."""
    given, tool = _dict(block.get("input")), _text(block.get("name"))
    if tool == "artifacts" and (text := _text(given.get("content"))):
        return [
            _titled(_text(given.get("title")), text, _text(given.get("type")), _text(given.get("language")))
        ]
    if tool == "create_file" and (text := _text(given.get("file_text"))):
        name = _text(given.get("path")).rpartition("/")[2]
        return [_titled(name, text, "code", name.rpartition(".")[2])]
    if tool in ("repl", "analysis") and (text := _text(given.get("code"))):
        return [_fenced(text, "javascript")]
    lost["tools"] += 1
    return []


def _artifact(found: re.Match[str]) -> str:
    facts = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[1])}
    kind = facts.get("type", "")
    return _titled(facts.get("title", ""), found[2].strip("\n"), kind, facts.get("language", ""))


def _titled(title: str, text: str, kind: str, language: str) -> str:
    body = text if kind == "text/markdown" else _fenced(text, language or _language_of(kind))
    return f"**{title}**\n\n{body}" if title else body


def _language_of(kind: str) -> str:
    return next((name for name in ("html", "svg", "mermaid", "react") if name in kind), "")


# ---- Open WebUI

# Thoughts and tool calls, as Open WebUI writes them into the text.
_DETAILS = re.compile(r'<details\s+type="(\w+)"[^<>]*>(.*?)</details>\s*', re.S)
_SUMMARY = re.compile(r"\s*<summary>[^<]*</summary>")


def _is_open_webui(raw: dict[str, Any]) -> bool:
    inner = _dict(raw.get("chat")) or raw
    history = inner.get("history")
    return isinstance(history, dict) or (inner is not raw and isinstance(inner.get("messages"), list))


def _open_webui(raw: dict[str, Any]) -> ArchivedChat:
    inner = _dict(raw.get("chat")) or raw
    history = _dict(inner.get("history"))
    chat = ArchivedChat(
        "Open WebUI",
        _text(raw.get("id")) or _text(inner.get("id")),
        _text(inner.get("title")) or _text(raw.get("title")),
        _time(raw.get("created_at")) or _time(inner.get("timestamp")),
        raw.get("archived") is True,
        raw.get("pinned") is True,
        _text(_dict(inner.get("params")).get("system")) or _text(inner.get("system")),
        _text(history.get("currentId")),
    )
    messages = _dict(history.get("messages"))
    if not messages:
        return _listed(chat, _list(inner.get("messages")))
    for name, each in messages.items():
        message = _dict(each)
        node = Node(name, _text(message.get("parentId")), "none")
        _open_webui_message(message, node, chat)
        chat.nodes.append(node)
    return chat


def _open_webui_message(message: dict[str, Any], node: Node, chat: ArchivedChat) -> None:
    role = _text(message.get("role"))
    node.time_s = _time(message.get("timestamp"))
    _plain_content(message, node, chat.lost)
    if role == "system":
        chat.system, node.text = chat.system or node.text, ""
        return
    node.role = "user" if role == "user" else "answer"
    thoughts = [node.thought] if node.thought else []

    def without(found: re.Match[str]) -> str:
        if found[1] == "reasoning":
            lines = html.unescape(_SUMMARY.sub("", found[2])).strip().split("\n")
            thoughts.append("\n".join(line.removeprefix(">").removeprefix(" ") for line in lines))
        elif found[1] == "code_interpreter":
            return html.unescape(_SUMMARY.sub("", found[2])).strip("\n") + "\n\n"
        else:
            chat.lost["tools"] += 1
        return ""

    node.text = _replaced(_DETAILS, "</details>", without, node.text)
    if not node.text:
        for item in map(_dict, _list(message.get("output"))):
            parts = [_text(_dict(each).get("text")) for each in _list(item.get("content"))]
            text = "\n\n".join(part for part in parts if part)
            if item.get("type") == "reasoning":
                thoughts.append(text)
            elif item.get("type") == "message":
                node.text = f"{node.text}\n\n{text}".strip("\n")
            else:
                chat.lost["tools"] += 1
    node.thought = "\n\n".join(each for each in thoughts if each)
    kept, markers = [], []
    for each in map(_dict, _list(message.get("files"))):
        file = _dict(each.get("file"))
        name = _text(each.get("name")) or _text(file.get("filename"))
        inside = _text(_dict(file.get("data")).get("content"))
        if each.get("type") == "image":
            chat.lost["images"] += 1
            markers.append(_marker("Image", name))
        elif inside:
            kept.append(Attachment(name, inside))
        else:
            markers.append(_lost_file(name, chat.lost))
    node.attachments = tuple(kept)
    node.text = "\n\n".join(each for each in (*markers, node.text) if each)


# ---- LM Studio


def _is_lm_studio(raw: dict[str, Any]) -> bool:
    messages = raw.get("messages")
    if not isinstance(messages, list):
        return False
    return any("versions" in _dict(each) for each in messages) or (not messages and "tokenCount" in raw)


def _lm_studio(raw: dict[str, Any]) -> ArchivedChat:
    created = _time(raw.get("createdAt"))
    chat = ArchivedChat(
        "LM Studio",
        str(raw.get("createdAt")) if created else "",
        _text(raw.get("name")),
        created,
        pinned=raw.get("pinned") is True,
        system=_text(raw.get("systemPrompt")),
    )
    before = ""
    for place, message in enumerate(map(_dict, raw["messages"])):
        versions = _list(message.get("versions"))
        selected = message.get("currentlySelected")
        shown = selected if isinstance(selected, int) and 0 <= selected < len(versions) else len(versions) - 1
        for number, version in enumerate(map(_dict, versions)):
            role = _text(version.get("role"))
            node = Node(f"{place} {number}", before, "user" if role == "user" else "answer")
            _lm_studio_version(version, node, chat)
            if role == "system":
                chat.system, node.role = chat.system or node.text, "none"
            chat.nodes.append(node)
        if versions:
            before = chat.current = f"{place} {shown}"
        else:
            chat.lost["messages"] += 1
    return chat


def _lm_studio_version(version: dict[str, Any], node: Node, chat: ArchivedChat) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    for step in (version, *map(_dict, _list(version.get("steps")))):
        style = _text(_dict(step.get("style")).get("type"))
        parts: list[str] = []
        for each in map(_dict, _list(step.get("content"))):
            kind = _text(each.get("type"))
            if kind == "text" and not (style == "thinking" and each.get("isStructural") is True):
                parts.append(_text(each.get("text")))
            elif kind in ("file", "image"):
                name = _text(each.get("fileIdentifier"))
                if kind == "image" or each.get("fileType") == "image":
                    chat.lost["images"] += 1
                    texts.append(_marker("Image"))
                else:
                    texts.append(_lost_file(name, chat.lost))
            elif kind.startswith("toolCall"):
                chat.lost["tools"] += 1
        (thoughts if style == "thinking" else texts).append("".join(parts))
        if _text(step.get("type")) == "toolStatus":
            chat.lost["tools"] += 1
    node.text = "\n\n".join(each for each in texts if each.strip())
    node.thought = "\n\n".join(each.strip() for each in thoughts if each.strip())


# ---- messages in a list, as the APIs have them


def _is_list(raw: dict[str, Any]) -> bool:
    messages = raw.get("messages")
    return isinstance(messages, list) and any(
        _dict(each).get("role") in ("user", "assistant") and "content" in each for each in messages
    )


def _message_list(raw: dict[str, Any]) -> ArchivedChat:
    title = _text(raw.get("title")) or _text(raw.get("name"))
    created = next(
        filter(None, (_time(raw.get(name)) for name in ("created_at", "createdAt", "created"))), None
    )
    return _listed(ArchivedChat("", _text(raw.get("id")), title, created), raw["messages"])


def _listed(chat: ArchivedChat, messages: list[Any]) -> ArchivedChat:
    before = ""
    for place, message in enumerate(map(_dict, messages)):
        role = _text(message.get("role"))
        node = Node(_text(message.get("id")) or f"message {place}", before, "none")
        node.time_s = _time(message.get("timestamp")) or _time(message.get("created_at"))
        if role == "tool":
            chat.lost["tools"] += 1
        else:
            _open_webui_message(message, node, chat)
            chat.lost["tools"] += len(_list(message.get("tool_calls")))
        chat.nodes.append(node)
        before = chat.current = node.id
    return chat


def _plain_content(message: dict[str, Any], node: Node, lost: Counter[str]) -> None:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else []
    for part in map(_dict, _list(content)):
        kind = _text(part.get("type"))
        if "image" in kind:
            lost["images"] += 1
            texts.append(_marker("Image"))
        elif "audio" in kind:
            lost["recordings"] += 1
        elif text := _text(part.get("text")):
            texts.append(text)
        else:
            lost["messages"] += 1
    node.text = "\n\n".join(texts)
    node.thought = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))


_READERS: tuple[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], ArchivedChat]], ...] = (
    (lambda raw: isinstance(raw.get("mapping"), dict), _chatgpt),
    (lambda raw: isinstance(raw.get("chat_messages"), list), _claude),
    (_is_open_webui, _open_webui),
    (_is_lm_studio, _lm_studio),
    (_is_list, _message_list),
)


# ---- values of any type


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return well_formed(text.replace("\0", "").replace("\r\n", "\n"))


def _time(value: Any) -> float | None:
    """Unix time of a number of seconds, milli-, micro- or nanoseconds, or of an ISO 8601 text."""
    if isinstance(value, str):
        try:
            number = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
    else:
        return None
    for _ in range(3):
        if number > _LAST_S:
            number /= 1000
    return number if _FIRST_S <= number <= _LAST_S else None


def _replaced(tags: re.Pattern[str], closing: str, instead: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with elements replaced, in linear time: behind the last closing tag none is searched for."""
    end = text.rfind(closing) + len(closing)
    return tags.sub(instead, text[:end]) + text[end:] if end >= len(closing) else text


def _marker(what: str, name: str = "") -> str:
    name = " ".join(name.split())
    return f"[{what}: {name}]" if name else f"[{what}]"


def _lost_file(name: str, lost: Counter[str]) -> str:
    is_image = name.lower().endswith(_IMAGE_ENDINGS)
    lost["images" if is_image else "files"] += 1
    return _marker("Image" if is_image else "File", name)


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall(r"^`{3,}", text, re.M)), default=2)
    fence = "`" * (longest + 1)
    language = language if re.fullmatch(r"[\w+#.-]{1,30}", language) and language != "unknown" else ""
    return f"{fence}{language}\n{text}\n{fence}"

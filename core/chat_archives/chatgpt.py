"""Chats of ChatGPT's exports."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from core.chat_archives.tree import Node
from core.chat_archives.values import (
    IMAGE_ENDINGS,
    ArchivedChat,
    dict_of,
    fenced,
    list_of,
    marker,
    text_of,
    time_of,
)

# Citations, links, names and formulas in the text, between marks of Unicode's private use area.
_MARKED = re.compile("\ue200([^\ue200\ue201]*)\ue201|[\ue200-\ue206]")
# Citations of browsing and of files in older exports.
_BRACKETED = re.compile(r"【\d+(?::\d+)?†[^【】]{0,200}】")
_FORMULA = re.compile(r'"content"\s*:\s*"([^"\\]*+(?:\\.[^"\\]*+)*)"', re.S)
_MOST_REFERENCES = 1_000


def read(raw: dict[str, Any]) -> ArchivedChat:
    chat = ArchivedChat(
        "ChatGPT",
        text_of(raw.get("conversation_id")) or text_of(raw.get("id")),
        text_of(raw.get("title")),
        time_of(raw.get("create_time")),
        raw.get("is_starred") is True,
        current=text_of(raw.get("current_node")),
    )
    for name, each in raw["mapping"].items():
        entry = dict_of(each)
        node = Node(name, text_of(entry.get("parent")), "none")
        chat.nodes.append(node)
        if message := dict_of(entry.get("message")):
            _message(message, node, chat.lost)
    return chat


def _message(message: dict[str, Any], node: Node, lost: Counter[str]) -> None:
    author, content = text_of(dict_of(message.get("author")).get("role")), dict_of(message.get("content"))
    metadata, kind = dict_of(message.get("metadata")), text_of(content.get("content_type"))
    node.time_s = time_of(message.get("create_time"))
    if kind in ("user_editable_context", "model_editable_context"):
        lost["instructions"] += 1
        return
    if author == "system" or metadata.get("is_visually_hidden_from_conversation") is True:
        return
    node.role = "user" if author == "user" else "answer"
    recipient = text_of(message.get("recipient")) or "all"
    if kind == "thoughts":
        thoughts = [dict_of(each) for each in list_of(content.get("thoughts"))]
        node.thought = "\n\n".join(
            text
            for each in thoughts
            for text in (text_of(each.get("summary")), text_of(each.get("content")))
            if text
        )
    elif kind == "reasoning_recap":
        pass  # “Thought for 12 seconds”
    elif kind in ("text", "multimodal_text"):
        parts = _parts(content, lost)
        if author == "tool":
            # A tool's words are not the answer, but the images that it made are part of it.
            images = [part for part in parts if part == marker("Image")]
            lost["tools"] += len(parts) > len(images)
            parts = images
        elif recipient != "all" and author != "user":
            lost["tools"] += 1
            parts = []
        node.text = "\n\n".join(parts) if kind == "multimodal_text" else "\n".join(parts)
    elif kind == "code" and author != "tool" and recipient in ("all", "python"):
        node.text = fenced(text_of(content.get("text")), text_of(content.get("language")))
    elif author == "tool" or recipient != "all" or kind in ("code", "tether_quote", "system_error"):
        lost["tools"] += 1
    elif text := text_of(content.get("text")) or "\n".join(_parts(content, lost)):
        node.text = text
    elif content:
        lost["messages"] += 1
    if author != "user":
        node.text = _with_links(node.text, metadata, lost)
    files = []
    for each in map(dict_of, list_of(metadata.get("attachments"))):
        name = text_of(each.get("name"))
        mime = text_of(each.get("mimeType")) or text_of(each.get("mime_type"))
        if not mime.startswith("image/") and not name.lower().endswith(IMAGE_ENDINGS):
            lost["files"] += 1
            files.append(marker("File", name))
    node.text = "\n\n".join(text for text in (*files, node.text) if text)


def _parts(content: dict[str, Any], lost: Counter[str]) -> list[str]:
    texts = []
    for part in list_of(content.get("parts")):
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = text_of(dict_of(part).get("content_type"))
        if kind == "image_asset_pointer":
            lost["images"] += 1
            texts.append(marker("Image"))
        elif kind == "audio_transcription":
            texts.append(text_of(part.get("text")))
        elif "audio" in kind or "video" in kind:
            lost["recordings"] += 1
        elif text := text_of(dict_of(part).get("text")):
            texts.append(text)
        else:
            lost["messages"] += 1
    return texts


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


# ---- citations and other marks in the text


def _with_links(text: str, metadata: dict[str, Any], lost: Counter[str]) -> str:
    """`text` with links in place of its citations; those without an address are removed."""
    if "\ue200" not in text and "†" not in text:
        return text
    instead = {}
    for citation in map(dict_of, list_of(metadata.get("citations"))[:_MOST_REFERENCES]):
        start, end = citation.get("start_ix"), citation.get("end_ix")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
            instead[text[start:end]] = _link(dict_of(citation.get("metadata")))
    for reference in map(dict_of, list_of(metadata.get("content_references"))[:_MOST_REFERENCES]):
        instead[text_of(reference.get("matched_text"))] = text_of(reference.get("alt")) or _link(reference)
    for marked, link in instead.items():
        if link and ("\ue200" in marked or _BRACKETED.fullmatch(marked)):
            text = text.replace(marked, link)

    def shown(mark: re.Match[str]) -> str:
        kind, *fields = (mark[1] or "").split("\ue202")
        if kind == "entity":
            names = [name for name in list_of(_parsed("".join(fields))) if isinstance(name, str)]
            return names[1] if len(names) > 1 else "".join(names)
        if kind == "url" and fields:
            target = fields[-1] if fields[-1].startswith(("http://", "https://")) else ""
            return f"[{fields[0]}]({target})" if target and len(fields) > 1 else fields[0]
        if kind == "genui":
            formula = _FORMULA.search("".join(fields)) if "math" in "".join(fields)[:100] else None
            if formula:
                return f"$${formula[1].replace(chr(92) * 2, chr(92))}$$"
            lost["tools"] += 1
        elif kind == "image_group":
            lost["images"] += 1
        return ""

    return _BRACKETED.sub("", _MARKED.sub(shown, text))


def _link(source: dict[str, Any]) -> str:
    """A Markdown link to a source or the first of several; empty without an address."""
    for each in (source, *map(dict_of, list_of(source.get("items"))[:1])):
        target = text_of(each.get("url"))
        if target.startswith(("http://", "https://")) and not re.search(r"[\s()<>]", target):
            title = text_of(each.get("attribution")) or text_of(each.get("title")) or target
            return f" ([{re.sub(r'[][]', '', ' '.join(title.split()))}]({target}))"
    return ""

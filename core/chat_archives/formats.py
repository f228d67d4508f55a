"""Recognises the formats of chats, and reads those of Open WebUI and LM Studio."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from core.chat_archives import chatgpt, claude
from core.chat_archives.tree import Node
from core.chat_archives.values import (
    ArchivedChat,
    clean,
    dict_of,
    list_of,
    lost_file,
    marker,
    replaced,
    text_of,
    time_of,
)
from core.events import Attachment

_TITLE_CHARACTERS = 300


def read_chats(raw: Any) -> list[ArchivedChat]:
    """Returns the conversation, or those in the lists of an object that is none.

    The format of each is recognised by its fields.
    """
    if not isinstance(raw, dict):
        return []
    if chat := _read(raw):
        return [chat]
    inside = [each for value in raw.values() for each in list_of(value) if isinstance(each, dict)]
    return [chat for each in inside if (chat := _read(each))]


def _read(raw: dict[str, Any]) -> ArchivedChat | None:
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
    chat.title = " ".join(clean(chat.title).split())[:_TITLE_CHARACTERS]
    chat.system = clean(chat.system).strip()
    taken: set[str] = set()
    for place, node in enumerate(chat.nodes):
        if node.id in taken:
            node.id = f"{node.id}\0{place}"
        taken.add(node.id)
        node.text, node.thought = clean(node.text).strip("\n"), clean(node.thought).strip()
        node.attachments = tuple(
            Attachment(clean(each.name).strip() or "Attachment", clean(each.text))
            for each in node.attachments
        )
    if chat.created_s is None:
        chat.created_s = next((node.time_s for node in chat.nodes if node.time_s is not None), None)


# ---- Open WebUI

# Thoughts and tool calls, as Open WebUI writes them into the text.
_DETAILS = re.compile(r'<details\s+type="(\w+)"[^<>]*>(.*?)</details>\s*', re.S)
_SUMMARY = re.compile(r"(?<!\s)\s*<summary>[^<]*</summary>")


def _is_open_webui(raw: dict[str, Any]) -> bool:
    inner = dict_of(raw.get("chat")) or raw
    history = inner.get("history")
    return isinstance(history, dict) or (inner is not raw and isinstance(inner.get("messages"), list))


def _open_webui(raw: dict[str, Any]) -> ArchivedChat:
    inner = dict_of(raw.get("chat")) or raw
    history = dict_of(inner.get("history"))
    chat = ArchivedChat(
        "Open WebUI",
        text_of(raw.get("id")) or text_of(inner.get("id")),
        text_of(inner.get("title")) or text_of(raw.get("title")),
        time_of(raw.get("created_at")) or time_of(inner.get("timestamp")),
        raw.get("pinned") is True,
        text_of(dict_of(inner.get("params")).get("system")) or text_of(inner.get("system")),
        text_of(history.get("currentId")),
    )
    messages = dict_of(history.get("messages"))
    if not messages:
        return _listed(chat, list_of(inner.get("messages")))
    for name, each in messages.items():
        message = dict_of(each)
        node = Node(name, text_of(message.get("parentId")), "none")
        _open_webui_message(message, node, chat)
        chat.nodes.append(node)
    return chat


def _open_webui_message(message: dict[str, Any], node: Node, chat: ArchivedChat) -> None:
    role = text_of(message.get("role"))
    node.time_s = time_of(message.get("timestamp")) or time_of(message.get("created_at"))
    chat.lost["tools"] += len(list_of(message.get("tool_calls")))
    if role == "tool":
        chat.lost["tools"] += 1
        return
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

    node.text = replaced(_DETAILS, "</details>", without, node.text)
    if not node.text:
        for item in map(dict_of, list_of(message.get("output"))):
            parts = [text_of(dict_of(each).get("text")) for each in list_of(item.get("content"))]
            text = "\n\n".join(part for part in parts if part)
            if item.get("type") == "reasoning":
                thoughts.append(text)
            elif item.get("type") == "message":
                node.text = f"{node.text}\n\n{text}".strip("\n")
            else:
                chat.lost["tools"] += 1
    node.thought = "\n\n".join(each for each in thoughts if each)
    kept, markers = [], []
    for each in map(dict_of, list_of(message.get("files"))):
        file = dict_of(each.get("file"))
        name = text_of(each.get("name")) or text_of(file.get("filename"))
        inside = text_of(dict_of(file.get("data")).get("content"))
        if each.get("type") == "image":
            chat.lost["images"] += 1
            markers.append(marker("Image", name))
        elif inside:
            kept.append(Attachment(name, inside))
        else:
            markers.append(lost_file(name, chat.lost))
    node.attachments = tuple(kept)
    node.text = "\n\n".join(each for each in (*markers, node.text) if each)


# ---- LM Studio


def _is_lm_studio(raw: dict[str, Any]) -> bool:
    messages = raw.get("messages")
    if not isinstance(messages, list):
        return False
    return any("versions" in dict_of(each) for each in messages) or (not messages and "tokenCount" in raw)


def _lm_studio(raw: dict[str, Any]) -> ArchivedChat:
    created = time_of(raw.get("createdAt"))
    chat = ArchivedChat(
        "LM Studio",
        str(raw.get("createdAt")) if created else "",
        text_of(raw.get("name")),
        created,
        pinned=raw.get("pinned") is True,
        system=_lm_studio_prompt(raw),
    )
    before = ""
    for place, message in enumerate(map(dict_of, raw["messages"])):
        versions = list_of(message.get("versions"))
        selected = message.get("currentlySelected")
        shown = selected if isinstance(selected, int) and 0 <= selected < len(versions) else len(versions) - 1
        for number, version in enumerate(map(dict_of, versions)):
            role = text_of(version.get("role"))
            node = Node(f"{place} {number}", before, "user" if role == "user" else "answer")
            _lm_studio_version(version, node, chat)
            if role == "system":
                chat.system, node.role = chat.system or node.text, "none"
            elif role == "tool":
                chat.lost["tools"] += 1
                node.role, node.text, node.thought = "none", "", ""
            chat.nodes.append(node)
        if versions:
            before = chat.current = f"{place} {shown}"
        else:
            chat.lost["messages"] += 1
    return chat


def _lm_studio_prompt(raw: dict[str, Any]) -> str:
    """The system prompt, which newer versions keep among the settings of the chat."""
    settings = dict_of(raw.get("perChatPredictionConfig"))
    for each in map(dict_of, list_of(settings.get("fields"))):
        if each.get("key") == "llm.prediction.systemPrompt" and (text := text_of(each.get("value"))):
            return text
    return text_of(raw.get("systemPrompt"))


def _lm_studio_version(version: dict[str, Any], node: Node, chat: ArchivedChat) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    for step in (version, *map(dict_of, list_of(version.get("steps")))):
        style = text_of(dict_of(step.get("style")).get("type"))
        parts: list[str] = []
        for each in map(dict_of, list_of(step.get("content"))):
            kind = text_of(each.get("type"))
            if kind == "text" and not (style == "thinking" and each.get("isStructural") is True):
                parts.append(text_of(each.get("text")))
            elif kind in ("file", "image"):
                name = text_of(each.get("fileIdentifier"))
                if kind == "image" or each.get("fileType") == "image":
                    chat.lost["images"] += 1
                    texts.append(marker("Image"))
                else:
                    texts.append(lost_file(name, chat.lost))
            elif kind.startswith("toolCall"):
                chat.lost["tools"] += 1
        (thoughts if style == "thinking" else texts).append("".join(parts))
        if text_of(step.get("type")) == "toolStatus":
            chat.lost["tools"] += 1
    node.text = "\n\n".join(each for each in texts if each.strip())
    node.thought = "\n\n".join(each.strip() for each in thoughts if each.strip())


# ---- messages of an old chat of Open WebUI, in a list


def _listed(chat: ArchivedChat, messages: list[Any]) -> ArchivedChat:
    before = ""
    for place, message in enumerate(map(dict_of, messages)):
        node = Node(text_of(message.get("id")) or f"message {place}", before, "none")
        _open_webui_message(message, node, chat)
        chat.nodes.append(node)
        before = chat.current = node.id
    return chat


def _plain_content(message: dict[str, Any], node: Node, lost: Counter[str]) -> None:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else []
    for part in map(dict_of, list_of(content)):
        kind = text_of(part.get("type"))
        if "image" in kind:
            lost["images"] += 1
            texts.append(marker("Image"))
        elif "audio" in kind:
            lost["recordings"] += 1
        elif text := text_of(part.get("text")) or text_of(dict_of(part.get("text")).get("value")):
            texts.append(text)
        elif "tool" in kind:
            lost["tools"] += 1
        else:
            lost["messages"] += 1
    node.text = "\n\n".join(texts)
    node.thought = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))


_READERS: tuple[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], ArchivedChat]], ...] = (
    (lambda raw: isinstance(raw.get("mapping"), dict) and "create_time" in raw, chatgpt.read),
    (lambda raw: isinstance(raw.get("chat_messages"), list), claude.read),
    (_is_open_webui, _open_webui),
    (_is_lm_studio, _lm_studio),
)

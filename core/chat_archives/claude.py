"""Chats of Claude's exports."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import Any, NamedTuple

from core.chat_archives.tree import Node
from core.chat_archives.values import (
    ArchivedChat,
    dict_of,
    fenced,
    list_of,
    lost_file,
    marker,
    replaced,
    text_of,
    time_of,
)
from core.events import Attachment

_ARTIFACT = re.compile(r"<antArtifact\b([^<>]*)>(.*?)</antArtifact>", re.S)
_ARTIFACT_THOUGHT = re.compile(r"<antThinking>(.*?)</antThinking>", re.S)
# All documents that a chat changes, each time; a change beyond them is shown alone.
_MOST_CHANGED_CHARACTERS = 4_000_000
# Tools whose results only confirm that they have written.
_WRITERS = ("artifacts", "create_file", "str_replace")
_ATTRIBUTE = re.compile(r'\b(\w+)="([^"]*)"')


def read(raw: dict[str, Any]) -> ArchivedChat:
    chat = ArchivedChat(
        "Claude",
        text_of(raw.get("uuid")),
        text_of(raw.get("name")),
        time_of(raw.get("created_at")),
        pinned=raw.get("is_starred") is True,
        current=text_of(raw.get("current_leaf_message_uuid")),
    )
    messages = [dict_of(each) for each in raw["chat_messages"]]
    names = {text_of(each.get("uuid")) for each in messages} - {""}
    documents = _Documents()
    # Older exports have no parents: their messages are in order.
    is_tree = any(text_of(each.get("parent_message_uuid")) in names for each in messages)
    before = ""
    for place, message in enumerate(messages):
        name = text_of(message.get("uuid")) or f"message {place}"
        parent = text_of(message.get("parent_message_uuid")) if is_tree else before
        sender = text_of(message.get("sender")) or text_of(message.get("role"))
        node = Node(name, parent, "user" if sender in ("human", "user") else "answer")
        node.time_s = time_of(message.get("created_at"))
        _content(message, node, chat.lost, documents)
        chat.nodes.append(node)
        before = name
    if not chat.current and chat.nodes:
        chat.current = chat.nodes[-1].id
    return chat


def project_name(raw: Any) -> str:
    """The name of a project with instructions or documents; empty for other values."""
    project = dict_of(raw)
    if project.get("is_starter_project") is True or "prompt_template" not in project:
        return ""
    has_content = text_of(project["prompt_template"]) or list_of(project.get("docs"))
    return text_of(project.get("name")) or "Project" if has_content else ""


def _content(message: dict[str, Any], node: Node, lost: Counter[str], documents: _Documents) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    places: dict[str, int] = {}  # of the documents that the message has written, in `texts`
    for block in map(dict_of, list_of(message.get("content"))):
        kind = text_of(block.get("type"))
        if kind == "text":
            texts.append(text_of(block.get("text")))
        elif kind == "thinking":
            thoughts.append(text_of(block.get("thinking")))
        elif kind == "tool_use":
            name, text = documents.written(block, lost)
            if name in places:
                texts[places[name]] = ""
            if name:
                places[name] = len(texts)
            texts.append(text)
        elif kind == "image":
            lost["images"] += 1
            texts.append(marker("Image"))
        elif "tool" in kind:
            lost["tools"] += text_of(block.get("name")) not in _WRITERS
        elif text := text_of(block.get("text")):
            texts.append(text)
        elif kind not in ("token_budget", ""):
            lost["messages"] += 1
    text = "\n\n".join(each for each in texts if each.strip()) or text_of(message.get("text"))

    def without(found: re.Match[str]) -> str:
        thoughts.append(found[1])
        return ""

    text = replaced(_ARTIFACT_THOUGHT, "</antThinking>", without, text)
    node.text = replaced(_ARTIFACT, "</antArtifact>", _artifact, text)
    node.thought = "\n\n".join(each.strip() for each in thoughts if each.strip())
    kept, markers = [], []
    attachments, files = (list(map(dict_of, list_of(message.get(key)))) for key in ("attachments", "files"))
    twice = Counter(filter(None, (text_of(each.get("file_name")) for each in attachments)))
    for place, each in enumerate((*attachments, *files)):
        name, inside = text_of(each.get("file_name")), text_of(each.get("extracted_content"))
        if place >= len(attachments) and twice[name]:  # a file with an attachment's name is the same
            twice[name] -= 1
        elif inside:
            kept.append(Attachment(name or "Pasted text", inside))
        else:
            markers.append(lost_file(name, lost))
    node.attachments = tuple(kept)
    node.text = "\n\n".join(each for each in (*markers, node.text) if each)


def _artifact(found: re.Match[str]) -> str:
    facts = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[1])}
    kind = facts.get("type", "")
    return _titled(facts.get("title", ""), found[2].strip("\n"), kind, facts.get("language", ""))


def _titled(title: str, text: str, kind: str, language: str) -> str:
    body = text if kind == "text/markdown" else fenced(text, language or _language_of(kind))
    return f"**{title}**\n\n{body}" if title else body


def _language_of(kind: str) -> str:
    return next((name for name in ("html", "svg", "mermaid", "react") if name in kind), "")


class _Documents:
    """The documents and programs of a chat, which are written and changed by calls of tools."""

    def __init__(self) -> None:
        self._known: dict[str, _Document] = {}
        self._changed_characters = 0

    def written(self, block: dict[str, Any], lost: Counter[str]) -> tuple[str, str]:
        """The name of the document that a call writes or changes, empty for none, and its new text."""
        given, tool = dict_of(block.get("input")), text_of(block.get("name"))
        name = text_of(given.get("id")) or text_of(given.get("path"))
        if tool == "artifacts" and (text := text_of(given.get("content"))):
            title, kind = text_of(given.get("title")), text_of(given.get("type"))
            former = self._known.get(name, _Document("", "", "", ""))
            language = text_of(given.get("language"))
            self._known[name] = made = _Document(
                title or former.title, kind or former.kind, language or former.language, text
            )
            return name, made.shown()
        if tool == "create_file" and (text := text_of(given.get("file_text"))):
            file = name.rpartition("/")[2]
            self._known[name] = made = _Document(file, "code", file.rpartition(".")[2], text)
            return name, made.shown()
        if tool in ("repl", "analysis") and (text := text_of(given.get("code"))):
            return "", fenced(text, "javascript")
        before, after = text_of(given.get("old_str")), text_of(given.get("new_str"))
        if before and (found := self._known.get(name)):
            self._changed_characters += len(found.text)
            if before in found.text and self._changed_characters < _MOST_CHANGED_CHARACTERS:
                self._known[name] = found = found._replace(text=found.text.replace(before, after, 1))
                return name, found.shown()
            if after:
                return "", found._replace(text=after).shown()
        lost["tools"] += 1
        return "", ""


class _Document(NamedTuple):
    title: str
    kind: str
    language: str
    text: str

    def shown(self) -> str:
        return _titled(self.title, self.text, self.kind, self.language)

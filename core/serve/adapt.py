"""Adapts decoded requests to the loaded model and to the fields that the APIs' requests have.

Content, calls and tools in the shape of another API, or of an older version, are rewritten: they mean the
same. What no loaded model supports is left out: images, files, tools that a server runs; so is what the
model should not read, such as a client's billing header. In earlier turns and in results of tools a short
text replaces such a part, so that one image does not end a conversation. In the question itself it is
refused: without it the answer would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

import msgspec

from core.events import Change
from core.serve.fields import change
from core.serve.http import field_error
from core.serve.tools import flat_choice, flat_tool

Kind = Literal["system", "user", "result", "other"]
_NOUNS = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "input_file": "file",
    "file": "file",
    "video_url": "video",
}
_DOES_NOT = {"image": "this model does not see images"}
_MUST_CALL = ("any", "required")
_HEADER = re.compile(r"\s*x-[\w-]*(?:billing|attribution)[\w-]*:[^\n]*\n?", re.IGNORECASE)
_TEXT_ONLY = "this model reads text only"
# Text in another API's parts: clients convert histories, and not each part of them.
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text")


class Adapter:
    """Adapts one request; `changes` names what is left out of it."""

    def __init__(self) -> None:
        self._changes: list[Change] = []

    @property
    def changes(self) -> tuple[Change, ...]:
        """One change for each part, item and tool."""
        return tuple(self._changes)

    def content(
        self, path: str, content: Any, types: Collection[str], *, text_type: str, is_question: bool = False
    ) -> Any:
        """`content` with a text part in place of each part whose type is not in `types`.

        Raises `ApiError` 400 for such a part of the question.
        """
        if not isinstance(content, dict | list):
            return content
        parts = []
        for number, part in enumerate(_parts(content, text_type)):
            kind = _type_of(part)
            if kind is None or kind in types:
                parts.append(part)
                continue
            if isinstance(text := part.get(_TEXTS.get(kind, "")), str):
                parts.append({"type": text_type, "text": text})
                continue
            where = f"{path}[{number}]"
            if kind in _THOUGHTS:
                reason = "the thoughts of earlier answers are not part of their text"
                self._changes.append(change(where, kind, "left out", reason))
                continue
            noun = _NOUNS.get(kind, kind[:80])
            reason = _DOES_NOT.get(noun, _TEXT_ONLY)
            if is_question:
                raise field_error(
                    f"{where}.type",
                    f"“{where}.type” is “{kind[:80]}”: {reason}. Remove the {noun} and send text instead.",
                )
            words = f"[{noun} left out: {reason}]"
            parts.append({"type": text_type, "text": words})
            self._changes.append(change(where, noun, words, reason))
        return parts

    def result(self, path: str, result: Any, types: Collection[str], *, text_type: str) -> Any:
        """The result of a call. One that is neither text nor parts is JSON: some clients send it as it is."""
        is_part = isinstance(result, dict) and (_type_of(result) is not None or "text" in result)
        if result is not None and not isinstance(result, str | list) and not is_part:
            return msgspec.json.encode(result).decode()
        return self.content(path, result, types, text_type=text_type)

    def items(self, path: str, items: list[Any], types: Iterable[str]) -> list[Any]:
        """`items` without those whose type is not in `types`."""
        kept = []
        for number, item in enumerate(items):
            kind = _type_of(item)
            if kind is None or kind in types:
                kept.append(item)
            else:
                reason = "Draftlight does not support items of this type"
                self._changes.append(change(f"{path}[{number}]", kind, "left out", reason))
        return kept

    def tools(self, fields: dict[str, Any], *, custom: bool = False, typed: bool = True) -> dict[str, Any]:
        """`fields` with the functions of `tools` alone, and with `tool_choice`, as the requests have them.

        `custom` keeps custom tools. Not `typed`: a custom tool is a function, as at Anthropic's.
        """
        tools = fields.get("tools")
        if not isinstance(tools, list):
            return self._with_choice(fields, [])
        kept: list[Any] = []
        missing = set()
        for number, tool in enumerate(tools):
            tool = flat_tool(tool, typed=typed)
            kind = _type_of(tool)
            if kind in (None, "function") or (custom and kind == "custom"):
                kept.append(tool)
            else:
                missing.add(str(tool.get("name") or kind))
                reason = "the model can call functions of the client only"
                self._changes.append(change(f"tools[{number}]", kind, "left out", reason))
        fields = fields | {"tools": kept}
        choice = fields.get("tool_choice")
        named = choice.get("name") or choice.get("type") if isinstance(choice, dict) else choice
        if missing and isinstance(named, str) and (named in missing or (not kept and named in _MUST_CALL)):
            reason = "the tool that must be called was left out"
            self._changes.append(change("tool_choice", choice, "auto", reason))
            del fields["tool_choice"]
        return self._with_choice(fields, kept)

    def _with_choice(self, fields: dict[str, Any], tools: list[Any]) -> dict[str, Any]:
        if not fields.get("tool_choice"):
            return fields
        names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
        return fields | {"tool_choice": flat_choice(fields["tool_choice"], names)}

    def system(self, path: str, content: Any) -> Any:
        """The system prompt `content` without a billing header of the client at its beginning.

        Claude Code writes one that differs in each request, so that no prefix could be reused.
        """
        if isinstance(content, str):
            header = _HEADER.match(content)
            if header is None:
                return content
            reason = "it differs in each request, so that nothing of the prompt could be reused"
            self._changes.append(change(path, header[0].strip(), "left out", reason))
            return content[header.end() :]
        if not isinstance(content, list):
            return content
        parts = []
        for number, part in enumerate(_parts(content, "text")):
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str) or self.system(f"{path}[{number}]", text) == text:
                parts.append(part)
            elif left := text[_HEADER.match(text).end() :]:  # type: ignore[union-attr]
                parts.append({**part, "text": left})
        return parts

    def arguments(self, path: str, arguments: Any) -> Any:
        """The arguments of an earlier call as JSON; an object that the answer's length cut off is completed.

        Some clients send the object itself instead of its JSON.
        """
        if arguments is None or isinstance(arguments, dict):
            return msgspec.json.encode(arguments or {}).decode()
        if not isinstance(arguments, str) or _is_json(arguments):
            return arguments
        whole = completed(arguments)
        if arguments.strip():
            self._changes.append(change(path, arguments, whole, "the call was cut off"))
        return whole


def _parts(content: dict[str, Any] | list[Any], text_type: str) -> list[Any]:
    """The parts of `content`. Some clients send one alone, plain strings, or texts without a type."""
    parts = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            part = {"type": text_type, "text": part}
        elif isinstance(part, dict) and "type" not in part and "text" in part:
            part = {"type": text_type, **part}
        if not (isinstance(part, dict) and _type_of(part) in _TEXTS and part.get("text", "") is None):
            parts.append(part)
    return parts


def completed(text: str) -> str:
    """`text`, a JSON object that ends too early, with its brackets closed; "{}" where that gives none."""
    closers: list[str] = []
    quoted = escaped = False
    cut, cut_closers = 0, ""
    for at, one in enumerate(text):
        if quoted:
            quoted = escaped or one != '"'
            escaped = not escaped and one == "\\"
        elif one == '"':
            quoted = True
        elif one in "{[":
            closers.append("}" if one == "{" else "]")
            cut, cut_closers = at + 1, "".join(reversed(closers))
        elif one in "}]" and closers:
            closers.pop()
        elif one == ",":
            cut, cut_closers = at, "".join(reversed(closers))
    whole = text[:-1] if escaped else text
    for tried in (whole + '"' * quoted + "".join(reversed(closers)), text[:cut] + cut_closers):
        if _is_json(tried) and tried.lstrip().startswith("{"):
            return tried
    return "{}"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return True


def question_at(messages: list[Any], kind_of: Callable[[dict[str, Any]], Kind]) -> int | None:
    """Index of the last message if it is a question; system messages after it do not count.

    Clients send images that a tool returned as a user message after the result: that is not a question.
    """
    last: int | None = None
    before: Kind = "other"
    kind: Kind = "other"
    for number, message in enumerate(messages):
        now = kind_of(message) if isinstance(message, dict) else "other"
        if now != "system":
            last, before, kind = number, kind, now
    return last if kind == "user" and before != "result" else None


def _type_of(part: Any) -> str | None:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else None

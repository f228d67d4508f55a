"""The conversation of a request: messages, items and blocks of any API, each read once into a `Message`.

Clients mix the shapes of APIs and of their versions, so each shape is read in every API. A call's result is a
separate turn. A document in plain text is an attachment, so that it can be read sparsely. Images are
collected (`core.serve.images`), because whether the model sees is known later. What no model supports is left
out: files, records of tools that a server runs; so are parts that the model should not read, such as a
client's billing header. In earlier turns and in results of tools a short text replaces such a part, so that
one file does not end a conversation. In the question itself it is refused: without it the answer would be
wrong. Unknown items and parts are refused.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from core.events import Attachment, Change, Image, Message, Role, ToolCall
from core.serve.fields import UnknownFields, change, refused
from core.serve.http import ApiError, field_error
from core.serve.images import GivenImage, given_image

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
ROLES = ("system", "developer", "user", "assistant")
CHAT_ROLES = tuple(_ROLES)

# Known fields of messages, items and parts. Those that servers add to their answers are not read.
_MESSAGE = frozenset(
    {"role", "content", "type", "id", "status", "phase", "name", "tool_calls", "tool_call_id",
     "function_call", "refusal", "audio", "annotations", "reasoning_content", "reasoning",
     "reasoning_details", "thinking_blocks", "provider_specific_fields"}
)  # fmt: skip
_CALL = frozenset({"type", "id", "call_id", "name", "arguments", "input", "status"})
_RESULT = frozenset({"type", "id", "call_id", "output", "status"})
_REASONING = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})
_TEXT = frozenset(
    {"type", "text", "refusal", "citations", "annotations", "logprobs", "prompt_cache_breakpoint"}
)  # fmt: skip
_THOUGHT = frozenset({"type", "thinking", "text", "signature", "data", "summary"})
_CALL_BLOCK = frozenset({"type", "id", "name", "input"})
_RESULT_BLOCK = frozenset({"type", "tool_use_id", "content", "is_error"})
_DOCUMENT = frozenset({"type", "source", "title", "context", "content", "citations"})
_CALLS = ("function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
# Types of texts, and the field that has the text.
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text")
_IMAGES = ("image", "image_url", "input_image")
_IMAGE = frozenset(
    {"type", "image_url", "source", "detail", "file_id", "data", "media_type", "mimeType", "mime_type",
     "annotations", "prompt_cache_breakpoint"}
)  # fmt: skip
_SOURCE = frozenset({"type", "media_type", "data", "url", "file_id", "detail"})
_DETAILS = (None, "auto", "high", "original")
_NOUNS = {
    "input_audio": "audio",
    "input_file": "file",
    "file": "file",
    "document": "file",
    "video_url": "video",
}
_NOT_READ = "this server reads text and images only"
# Records of servers' own tools in a history; the answer after them has their findings.
_RECORDS = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
     "mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response", "server_tool_use",
     "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
     "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
     "tool_search_tool_result", "mcp_tool_use", "mcp_tool_result", "container_upload", "tool_reference"}
)  # fmt: skip
_HEADER = re.compile(r"\s*x-(?=[\w-]*(?:billing|attribution))[\w-]*:[^\n]*\n?", re.IGNORECASE)


class _Turn(Struct):
    """The parts of one message."""

    role: Role
    is_question: bool = False
    replaces_images: bool = False  # if the model does not see
    texts: list[str | Image] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)

    def message(self) -> Message:
        """The message; a text or part is a line, a thought a paragraph. Images are between texts."""
        content, images, is_line = "", list[Image](), False
        for part in self.texts:
            if isinstance(part, Image):
                images.append(replace(part, at=len(content)))
            else:
                content += f"\n{part}" if is_line else part
            is_line = isinstance(part, str)
        return Message(
            self.role,
            content,
            tuple(self.attachments),
            tuple(self.calls),
            thought="\n\n".join(self.thoughts),
            images=tuple(images),
        )


class ConversationReader:
    """Reads one request's `messages`, whose field is `name`; raises `ApiError` 400 that names the place.

    `changes` are the parts that the model does not read, `unknown` the fields that it does not have. `images`
    are those of the messages, in which each is an `Image` with its number among them as its `path`.
    """

    def __init__(self, name: str, roles: Collection[str] = ROLES) -> None:
        self._name = name
        self._roles = roles
        self.messages: list[Message] = []
        self.changes: list[Change] = []
        self.images: list[GivenImage] = []
        self.unknown = UnknownFields()
        self._thoughts: list[str] = []  # of the assistant's next item
        self._beside = _Turn("assistant")  # calls that follow the last message
        # Calls without a result; the first one is found at once, which a dict does not after removals.
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._calls = 0
        self._named = False

    def system(self, place: str, content: Any) -> str:
        """Reads the system prompt in the field `place`."""
        turn = _Turn("system")
        self._content(place, content, turn)
        read = turn.message()
        if turn.texts and (read.content or read.images):
            self.messages.append(read)
        return read.content

    def read(self, given: Any) -> Any:
        """All messages, of which the list `given` has those after the system prompt.

        Any other value is returned as it is.
        """
        if not isinstance(given, list):
            return given
        before = len(self.messages)
        kinds = list(map(_kind, given))
        question = _question_at(kinds)
        for number, item in enumerate(given):
            try:
                turn = _Turn("user", number == question, _replaces_images(kinds, number))
                self._item(f"{self._name}[{number}]", item, turn)
            except RecursionError:
                raise field_error(self._name, "The request is nested too deeply.") from None
        self._end_calls()
        if len(self.messages) == before:
            raise field_error(self._name, f"“{self._name}” is empty; it accepts at least one message.")
        return tuple(self.messages)

    # ---- items

    def _item(self, place: str, item: Any, turn: _Turn) -> None:
        if not isinstance(item, dict):
            raise field_error(place, f"“{place}” is not a message.")
        kind = _text(f"{place}.type", item.get("type") or "message")
        if kind == "reasoning":
            self.unknown.check(place, item, _REASONING)
            thought = next(filter(None, (_paragraphs(item.get(one)) for one in ("content", "summary"))), "")
            self._thoughts += [thought] if thought else []
            return
        if kind == "message":
            self._end_calls()
            self._message(place, item, turn)
        elif kind in _CALLS:
            self._call_item(place, item, "input" if kind == "custom_tool_call" else "arguments")
        elif kind in _RESULTS:
            self._end_calls()
            self.unknown.check(place, item, _RESULT)
            result = self._result(f"{place}.output", item.get("output"))
            answered = self._answered(f"{place}.call_id", item.get("call_id") or item.get("id"))
            self.messages.append(replace(result, tool_call_id=answered))
        elif kind in _RECORDS:
            reason = "Draftlight does not support items of this type"
            self.changes.append(change(place, kind, "left out", reason))
            return
        else:
            raise _unknown_type(place, kind)
        self._thoughts.clear()

    def _call_item(self, place: str, item: dict[str, Any], name: str) -> None:
        self.unknown.check(place, item, _CALL)
        self._beside.calls.append(self._call(place, item, name, item.get("call_id") or item.get("id")))
        self._beside.thoughts += self._thoughts

    def _end_calls(self) -> None:
        """Calls next to the assistant's message are a part of it."""
        calls, thoughts = self._beside.calls, self._beside.thoughts
        if not calls:
            return
        turn = self.messages.pop() if self.messages and self.messages[-1].role == "assistant" else None
        turn = turn or Message("assistant", "")
        thought = "\n\n".join(filter(None, (turn.thought, *thoughts)))
        self.messages.append(replace(turn, tool_calls=(*turn.tool_calls, *calls), thought=thought))
        self._beside = _Turn("assistant")

    def _message(self, place: str, item: dict[str, Any], turn: _Turn) -> None:
        given, content = item.get("role"), item.get("content")
        if not isinstance(given, str) or given not in self._roles:
            what = "is missing" if given is None else f"accepts {', '.join(self._roles)}"
            raise field_error(f"{place}.role", f"“{place}.role” {what}.")
        self.unknown.check(place, item, _MESSAGE)
        turn.role = _ROLES[given]
        if turn.role == "tool":
            result = self._result(f"{place}.content", content)
            answered = self._answered(f"{place}.tool_call_id", item.get("tool_call_id"))
            self.messages.append(replace(result, tool_call_id=answered))
            return
        if (name := item.get("name")) and not self._named:
            self._named = True
            reason = "the model reads roles, not the names of participants"
            self.changes.append(change(f"{place}.name", name, "left out", reason))
        before = len(self.messages)
        self._content(f"{place}.content", content, turn)
        if turn.role == "assistant":
            turn.thoughts = [*self._thoughts, *(_thoughts_beside(item) or turn.thoughts)]
            self._calls_beside(place, item, turn)
        if turn.texts or turn.attachments or len(self.messages) == before:
            self.messages.append(turn.message())

    def _calls_beside(self, place: str, item: dict[str, Any], turn: _Turn) -> None:
        """The calls in `tool_calls`, or in `function_call` of the oldest API version."""
        calls, place = item.get("tool_calls") or [], f"{place}.tool_calls"
        if not calls and isinstance(called := item.get("function_call"), dict):
            calls = [{"function": called}]
        if not isinstance(calls, list):
            raise field_error(place, f"“{place}” is not a list.")
        if calls:
            self._waiting.clear()
        for number, call in enumerate(calls):
            where = f"{place}[{number}]"
            kind = "custom" if isinstance(call, dict) and isinstance(call.get("custom"), dict) else "function"
            function = call.get(kind) if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise field_error(f"{where}.function", f"“{where}.function” is missing.")
            self.unknown.check(where, call, ("id", "type", "index", kind))
            self.unknown.check(f"{where}.{kind}", function, ("name", "arguments", "input"))
            name = "input" if kind == "custom" else "arguments"
            turn.calls.append(self._call(f"{where}.{kind}", function, name, call.get("id")))

    # ---- parts

    def _content(self, place: str, content: Any, turn: _Turn) -> None:
        """Adds the text or parts `content` to `turn`. Some clients send one part alone."""
        if isinstance(content, str):
            turn.texts.append(self._without_header(place, content) if turn.role == "system" else content)
        elif isinstance(content, dict | list):
            for number, part in enumerate(content if isinstance(content, list) else [content]):
                self._part(f"{place}[{number}]", part, turn)
        elif content is not None:
            raise field_error(place, f"“{place}” is neither a text nor a list of parts.")

    def _part(self, place: str, part: Any, turn: _Turn) -> None:
        if isinstance(part, str):
            part = {"text": part}
        if not isinstance(part, dict):
            raise field_error(place, f"“{place}” is not a part of a message.")
        kind = _text(f"{place}.type", part.get("type", "text" if "text" in part else None))
        if kind in _TEXTS:
            self._add_text(place, part, part.get(_TEXTS[kind]), turn)
        elif kind in _THOUGHTS and turn.role == "assistant":
            self.unknown.check(place, part, _THOUGHT)
            thought = next((part[one] for one in ("thinking", "text") if isinstance(part.get(one), str)), "")
            turn.thoughts += [thought] if thought else []
        elif kind in _THOUGHTS:
            reason = "the thoughts of earlier answers are not part of their text"
            self.changes.append(change(place, kind, "left out", reason))
        elif kind == "tool_use" and turn.role == "assistant":
            self.unknown.check(place, part, _CALL_BLOCK)
            turn.calls.append(self._call(place, part, "input", part.get("id")))
        elif kind == "tool_result" and turn.role == "user":
            self.unknown.check(place, part, _RESULT_BLOCK)
            self._add_result(place, part, turn)
        elif (found := _document(place, part, kind)) is not None:
            self.unknown.check(place, part, _DOCUMENT)
            self._add_document(place, part, found, turn)
        elif kind in _IMAGES:
            self._add_image(place, part, kind, turn)
        elif kind in _NOUNS or kind in _RECORDS:
            self._replace(place, kind, turn)
        else:
            raise _unknown_type(place, kind)

    def _add_text(self, place: str, part: dict[str, Any], text: Any, turn: _Turn) -> None:
        self.unknown.check(place, part, _TEXT)
        if text is None:
            return
        said = _text(f"{place}.text", text)
        left = self._without_header(place, said) if turn.role == "system" else said
        if left or left == said:
            turn.texts.append(left)

    def _add_result(self, place: str, part: dict[str, Any], turn: _Turn) -> None:
        """The text before a result is a turn before it."""
        if turn.texts or turn.attachments:
            self.messages.append(turn.message())
            turn.texts, turn.attachments = [], []
        mark = "Error: " if part.get("is_error") else ""
        result = self._result(f"{place}.content", part.get("content"))
        answered = self._answered(f"{place}.tool_use_id", part.get("tool_use_id"))
        images = tuple(replace(each, at=each.at + len(mark)) for each in result.images)
        content = mark + result.content
        self.messages.append(replace(result, content=content, images=images, tool_call_id=answered))

    def _add_document(self, place: str, part: dict[str, Any], texts: list[str], turn: _Turn) -> None:
        citations = part.get("citations")
        if isinstance(citations, dict) and citations.get("enabled"):
            raise refused(f"{place}.citations", "answers do not cite; it accepts “enabled”: false")
        title, context, text = texts
        if part["type"] == "document" and turn.role == "user":
            name = title or f"Document {len(turn.attachments) + 1}"
            turn.attachments.append(Attachment(name, f"{context}\n\n{text}" if context else text))
        else:
            turn.texts.append("\n".join(filter(None, texts)))

    def _add_image(self, place: str, part: dict[str, Any], kind: str, turn: _Turn) -> None:
        self.unknown.check(place, part, _IMAGE)
        for name in ("image_url", "source"):
            if isinstance(inner := part.get(name), dict):
                self.unknown.check(f"{place}.{name}", inner, _SOURCE)
        nested = part.get("image_url")
        where, fields = (f"{place}.image_url", nested) if isinstance(nested, dict) else (place, part)
        if (detail := fields.get("detail")) not in _DETAILS:
            self.changes.append(change(f"{where}.detail", detail, "auto", "the model has one size of images"))
        given = given_image(place, part, kind)
        given.replaceable = turn.replaces_images
        turn.texts.append(Image("", str(len(self.images)), "", 0, 0))
        self.images.append(given)

    def _replace(self, place: str, kind: str, turn: _Turn) -> None:
        """Replace a part that the model does not read by a few words."""
        noun = _NOUNS.get(kind, kind)
        if turn.is_question:
            raise field_error(
                f"{place}.type",
                f"“{place}.type” is “{kind}”: {_NOT_READ}. Remove the {noun} and send text instead.",
            )
        words = f"[{noun} left out: {_NOT_READ}]"
        turn.texts.append(words)
        self.changes.append(change(place, noun, words, _NOT_READ))

    # ---- calls and results

    def _call(self, place: str, given: dict[str, Any], name: str, id: Any) -> ToolCall:
        """The call `given`, whose arguments are its field `name`; a custom tool's are one text."""
        arguments = given.get(name)
        if name == "input" and not isinstance(arguments, dict) and given.get("type") != "tool_use":
            arguments = {"input": arguments or ""}
        self._calls += 1
        made = ToolCall(
            _text(f"{place}.id", id or f"call_{self._calls}"),
            _text(f"{place}.name", given.get("name")),
            self._arguments(f"{place}.{name}", arguments),
        )
        self._waiting[made.id] = None
        return made

    def _arguments(self, place: str, arguments: Any) -> str:
        """Arguments as JSON; an object that the answer's length cut off is completed.

        Some clients send the object itself instead of its JSON.
        """
        if arguments is None or isinstance(arguments, dict):
            return msgspec.json.encode(arguments or {}).decode()
        text = _text(place, arguments)
        if _is_json(text):
            return text
        whole = completed(text)
        if text.strip():
            self.changes.append(change(place, text, whole, "the call was cut off"))
        return whole

    def _result(self, place: str, result: Any) -> Message:
        """A result's message. One that is neither text nor parts is JSON: some clients send it as it is."""
        is_part = isinstance(result, dict) and (isinstance(result.get("type"), str) or "text" in result)
        if not (result is None or isinstance(result, str | list) or is_part):
            return Message("tool", msgspec.json.encode(result).decode())
        turn = _Turn("tool", replaces_images=True)
        self._content(place, result, turn)
        return turn.message()

    def _answered(self, place: str, given: Any) -> str:
        """The id of the call that a result answers; results without one follow in the order of the calls."""
        id = given or next(iter(self._waiting), None)
        if id is None:
            raise field_error(place, f"“{place}” is missing: a result names the call that it answers.")
        answered = _text(place, id)
        self._waiting.pop(answered, None)
        return answered

    def _without_header(self, place: str, text: str) -> str:
        """`text` without a billing header of the client at its beginning.

        Claude Code writes one that differs in each request, so that no prefix could be reused.
        """
        header = _HEADER.match(text)
        if header is None:
            return text
        reason = "it differs in each request, so that nothing of the prompt could be reused"
        self.changes.append(change(place, header[0].strip(), "left out", reason))
        return text[header.end() :]


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str):
        raise field_error(place, f"“{place}” is {'missing' if value is None else 'not a text'}.")
    return value


def _document(place: str, part: dict[str, Any], kind: str) -> list[str] | None:
    """Title, context and text of a document, a search result or a summary; None for other parts."""
    head: tuple[Any, Any] = (part.get("title"), part.get("context"))
    content: Any = None
    if kind == "document" and isinstance(source := part.get("source"), dict):
        given = {"text": "data", "content": "content"}.get(str(source.get("type")))
        content = source.get(given) if given else None
    elif kind == "search_result":
        content, head = part.get("content"), (part.get("title"), part.get("source"))
    elif kind == "compaction":
        content, head = part.get("content"), ("", "")
    if content is None:
        return None
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [_text(f"{place}.text", one.get("text") if isinstance(one, dict) else one) for one in parts]
    return [*(one if isinstance(one, str) else "" for one in head), "\n".join(texts)]


def _thoughts_beside(item: dict[str, Any]) -> list[str]:
    """The thought before an earlier answer, in the fields where servers give it; the first that has one."""
    for name in ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"):
        given = item.get(name)
        if thought := given if isinstance(given, str) else _paragraphs(given):
            return [thought]
    return []


def _paragraphs(parts: Any) -> str:
    """The texts of `parts`, a list of objects that clients may fill with anything."""
    found = (
        part.get("text") or part.get("thinking") or part.get("summary")
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict)
    )
    return "\n\n".join(text for text in found if isinstance(text, str) and text)


def _unknown_type(place: str, kind: Any) -> ApiError:
    """400: the conversation would be another one without the item or part."""
    why = (
        "the conversation has another meaning without it. Send it as text, or as a function's call or result"
    )
    shown = str(kind)[:80]
    return field_error(f"{place}.type", f"“{place}.type” is “{shown}”, which is not supported: {why}.",
                       "unsupported_parameter")  # fmt: skip


def _question_at(kinds: list[str]) -> int | None:
    """Index of the last item if it is a question; system messages after it do not count."""
    last = next((number for number in reversed(range(len(kinds))) if kinds[number] != "system"), 0)
    return last if kinds and kinds[last] == "user" and not _replaces_images(kinds, last) else None


def _replaces_images(kinds: list[str], number: int) -> bool:
    """Whether an item's images are from a tool or an answer: the conversation can continue without them.

    Clients send images that a tool returned as a user message after the result.
    """
    before = next((kind for kind in reversed(kinds[:number]) if kind != "system"), "")
    return kinds[number] in ("assistant", "result") or (kinds[number] == "user" and before == "result")


def _kind(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    role = str(item.get("role"))
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    results = (isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)
    if item.get("type") in _RESULTS or role in ("tool", "function") or any(results):
        return "result"
    return _ROLES.get(role, "")


def completed(text: str) -> str:
    """The JSON object `text`, which ends too early, with its brackets closed; "{}" if that is none."""
    closers: list[str] = []
    quoted = escaped = False
    cut = 0
    closed: list[str] = []  # since the cut, after which no bracket is opened
    for at, one in enumerate(text):
        if quoted:
            quoted = escaped or one != '"'
            escaped = not escaped and one == "\\"
        elif one == '"':
            quoted = True
        elif one in "{[":
            closers.append("}" if one == "{" else "]")
            cut, closed = at + 1, []
        elif one in "}]" and closers:
            closed.append(closers.pop())
        elif one == ",":
            cut, closed = at, []
    whole = text[:-1] if escaped else text
    end = "".join(reversed(closers))
    for tried in (whole + '"' * quoted + end, text[:cut] + "".join(closed) + end):
        if _is_json(tried) and tried.lstrip().startswith("{"):
            return tried
    return "{}"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return True

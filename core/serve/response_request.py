"""Requests of `/v1/responses`: their fields and input items, and the command made of them.

An answer's text and its calls are separate items there, and one turn here. The rules for unsupported fields
are those of chat completions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from core.events import Change, Grammar, Message, ModelInfo, Role, ToolCall
from core.serve.fields import (
    FORMS,
    Adapter,
    Kind,
    change,
    convert_fields,
    effort_changes,
    question_at,
    refused,
    thinking_at,
    with_answer_form,
)
from core.serve.http import field_error
from core.serve.request import AnswerRequest, limit

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


class InputText(Struct, tag_field="type", tag="input_text"):
    """Text of a person or a program."""

    text: str
    prompt_cache_breakpoint: Any = None


class OutputText(Struct, tag_field="type", tag="output_text"):
    """Text of an earlier answer; its annotations are ignored."""

    text: str
    annotations: Any = None
    logprobs: Any = None


class Refusal(Struct, tag_field="type", tag="refusal"):
    """An earlier answer that refused."""

    refusal: str


Part = InputText | OutputText | Refusal


class MessageItem(Struct, tag_field="type", tag="message"):
    """A message. Clients leave its `type` out."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part] = ""
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class CallItem(Struct, tag_field="type", tag="function_call"):
    """A call of an earlier answer."""

    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None
    caller: Any = None


class ResultItem(Struct, tag_field="type", tag="function_call_output"):
    """The result of a call."""

    call_id: str
    output: str | list[InputText]
    id: str | None = None
    status: str | None = None
    caller: Any = None


class ReasoningItem(Struct, tag_field="type", tag="reasoning"):
    """The thought before an earlier answer or call: its text, else its summary. Encrypted text is ignored."""

    id: str | None = None
    summary: Any = None
    content: Any = None
    encrypted_content: Any = None
    status: str | None = None


Item = MessageItem | CallItem | ResultItem | ReasoningItem
_ITEMS = tuple(str(kind.__struct_config__.tag) for kind in get_args(Item))
_CALLS = ("function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_PARTS = tuple(str(kind.__struct_config__.tag) for kind in (InputText, OutputText, Refusal))


def with_types(given: Any) -> Any:
    """`input` with the type of items that are messages without one."""
    if not isinstance(given, list):
        return given
    return [
        {"type": "message", **item} if isinstance(item, dict) and "role" in item else item for item in given
    ]


def adapted(adapter: Adapter, items: list[Any]) -> list[Any]:
    """The items of known types, with texts in place of parts that the model cannot read."""
    question = question_at(items, _kind)
    read = [
        _adapted(adapter, f"input[{number}]", item, number == question) if isinstance(item, dict) else item
        for number, item in enumerate(items)
    ]
    return adapter.items("input", read, _ITEMS)


def _adapted(adapter: Adapter, path: str, item: dict[str, Any], is_question: bool) -> dict[str, Any]:
    kind = item.get("type")
    if kind in (*_CALLS, *_RESULTS):
        item = {**item, "call_id": item.get("call_id") or item.get("id")}
    if kind == "custom_tool_call":  # to the model its tool is a function of one text
        arguments = {"input": item.pop("input", "")}
        item |= {"type": "function_call", "arguments": arguments}
    if kind == "message":
        where = f"{path}.content"
        content = adapter.content(
            where, item.get("content"), _PARTS, text_type="input_text", is_question=is_question
        )
        if item.get("role") in ("system", "developer"):
            content = adapter.system(where, content)
        return {**item, "content": content}
    if kind in _RESULTS:
        result = adapter.result(f"{path}.output", item.get("output"), ("input_text",), text_type="input_text")
        return {**item, "type": "function_call_output", "output": "" if result is None else result}
    if kind in _CALLS:
        return {**item, "arguments": adapter.arguments(f"{path}.arguments", item.get("arguments"))}
    return item


def _kind(item: dict[str, Any]) -> Kind:
    if item.get("type") == "message":
        role = str(item.get("role"))
        return "user" if role == "user" else "system" if role in ("system", "developer") else "other"
    return "result" if item.get("type") in _RESULTS else "other"


def messages_of(instructions: str | None, given: str | Sequence[Item]) -> tuple[Message, ...]:
    """The messages for the worker. Raises `ApiError` 400 if there are none."""
    items = [MessageItem("user", given)] if isinstance(given, str) else given
    messages = [Message("system", instructions)] if instructions else []
    asked = len(messages)
    thoughts: list[str] = []  # of the assistant's next item
    for item in items:
        match item:
            case MessageItem(role, content):
                thought = _taken(thoughts) if role == "assistant" else ""
                messages.append(Message(_ROLES[role], _text(content), thought=thought))
            case CallItem(call, name, arguments):
                made = ToolCall(call, name, arguments)
                if len(messages) > asked and messages[-1].role == "assistant":
                    turn = messages.pop()
                    thought = "\n\n".join(each for each in (turn.thought, _taken(thoughts)) if each)
                    messages.append(replace(turn, tool_calls=(*turn.tool_calls, made), thought=thought))
                else:
                    messages.append(Message("assistant", "", tool_calls=(made,), thought=_taken(thoughts)))
            case ResultItem(call, output):
                messages.append(Message("tool", _text(output), tool_call_id=call))
            case ReasoningItem():
                thoughts += [text for text in [_thought(item)] if text]
                continue
        thoughts.clear()
    if len(messages) == asked:
        raise field_error("input", "“input” is empty; it accepts a text or at least one message.")
    return tuple(messages)


def _taken(thoughts: list[str]) -> str:
    """The thoughts as one text; the list is empty after this."""
    text = "\n\n".join(thoughts)
    thoughts.clear()
    return text


def _thought(item: ReasoningItem) -> str:
    return _part_texts(item.content) or _part_texts(item.summary)


def _part_texts(parts: object) -> str:
    """The texts of `parts`, a list of objects that clients may fill with anything."""
    if not isinstance(parts, list):
        return ""
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _text(content: str | Sequence[Part]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.refusal if isinstance(part, Refusal) else part.text for part in content)


# Client, storage, billing, caching, and limits of unsupported features: these do not change the answer.
IGNORED = frozenset(
    {
        "access_programs",
        "background_options",
        "cache_control",
        "caller",
        "client_metadata",
        "moderation",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
        "truncation",
    }
)
UNSUPPORTED = {
    **FORMS,
    "conversation": "the server stores no conversations; send the items themselves",
    "prompt": "the server stores no prompts; send “instructions” and “input”",
}
_LOGPROBS = "message.output_text.logprobs"
# Thoughts are never encrypted, so this adds nothing to the answer.
_ENCRYPTED = "reasoning.encrypted_content"
_MOST_TOP = 20


class Text(Struct, tag_field="type", tag="text"):
    """The answer is text."""


class JsonObject(Struct, tag_field="type", tag="json_object"):
    """The answer is a JSON object."""


class JsonSchema(Struct, tag_field="type", tag="json_schema"):
    """The answer is JSON by a schema, which is always kept."""

    schema: dict[str, Any]
    name: str = ""
    description: str | None = None
    strict: bool | None = None


class TextConfig(Struct):
    """The form of the answer, and how long it is."""

    format: Text | JsonObject | JsonSchema | None = None
    verbosity: str | None = None


class Reasoning(Struct):
    """How long the model thinks, and whether its thoughts are shown as summaries, whole all the same."""

    effort: str | None = None
    summary: Any = None
    generate_summary: Any = None


class ResponseRequest(AnswerRequest, kw_only=True):
    """A response's request."""

    prompt_field: ClassVar[str] = "input"

    input: str | list[Item]
    instructions: str | None = None
    text: TextConfig = field(default_factory=TextConfig)
    reasoning: Reasoning = field(default_factory=Reasoning)
    include: list[str] = field(default_factory=list)
    max_output_tokens: int | None = None
    previous_response_id: str | None = None
    store: bool = True
    top_logprobs: int | None = None
    # Returned as sent.
    metadata: Any = None
    max_tool_calls: Any = None
    prompt_cache_key: Any = None
    safety_identifier: Any = None
    user: Any = None
    background: bool = False

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The field that limits the answer's length, and its value in tokens."""
        return limit("max_output_tokens", self.max_output_tokens)

    @property
    def summarizes(self) -> bool:
        """Whether thoughts are summaries in the answer."""
        return bool(self.reasoning.summary or self.reasoning.generate_summary)

    @property
    def wants_logprobs(self) -> bool:
        """Whether log probabilities are returned with the text."""
        return _LOGPROBS in self.include

    def conversation(self) -> tuple[Message, ...]:
        """`instructions` and `input`."""
        return messages_of(self.instructions, self.input)

    @property
    def custom_tools(self) -> frozenset[str]:
        """Names of the tools whose input is any text."""
        return frozenset(tool.name for tool in self.tools if tool.type == "custom")

    def _values(self, context_tokens: int) -> Iterable[tuple[str, str, Any]]:
        if self.reasoning.effort is not None:
            yield "reasoning.effort", "chat.thinking", thinking_at(self.reasoning.effort)
        yield from super()._values(context_tokens)

    def check(self) -> None:
        """Refuse answers in the background."""
        if self.background:
            raise refused("background", "answers are not stored for later; it accepts false")

    def unsupported(self, model: ModelInfo) -> Iterable[Change]:
        """Effort, verbosity, grammars of custom tools, and other values of `include`."""
        yield from effort_changes("reasoning.effort", self.reasoning.effort, model)
        if self.text.verbosity not in (None, "medium"):
            reason = "the loaded model has no levels of verbosity"
            yield change("text.verbosity", self.text.verbosity, "medium", reason)
        for number, tool in enumerate(self.tools):
            if isinstance(tool.format, dict) and "definition" in tool.format:
                reason = "the input of a custom tool is any text"
                yield change(f"tools[{number}].format", tool.format, "in the tool's description", reason)
        for name in sorted(set(self.include) - {_ENCRYPTED, _LOGPROBS}):
            yield change("include", name, "", "answers do not have this")

    def logprobs_count(self) -> int | None:
        """By `include` and `top_logprobs`."""
        if not self.wants_logprobs:
            if self.top_logprobs:
                raise field_error("top_logprobs", f"“top_logprobs” needs “include”: [“{_LOGPROBS}”].")
            return None
        top = self.top_logprobs or 0
        if not 0 <= top <= _MOST_TOP:
            raise field_error("top_logprobs", f"“top_logprobs” accepts 0 to {_MOST_TOP}.")
        return top

    def answer_grammar(self) -> tuple[str, Grammar] | None:
        """By `text.format`."""
        match self.text.format:
            case JsonObject():
                return "text.format", Grammar("json_object")
            case JsonSchema(schema):
                return "text.format", Grammar("json_schema", msgspec.json.encode(schema).decode())
            case _:
                return None


def response_request(fields: dict[str, Any]) -> ResponseRequest:
    """The request from a decoded body. Raises `ApiError` 400."""
    adapter = Adapter()
    given = with_types(fields.get("input"))
    if isinstance(given, list):
        given = adapted(adapter, given)
    fields = with_answer_form(adapter.tools(fields, custom=True) | {"input": given})
    if form := fields.pop("response_format", None):
        # Chat completions have the schema's fields one level deeper.
        schema = form.get("json_schema") or {} if isinstance(form, dict) else None
        if not isinstance(schema, dict):
            raise field_error("response_format", "“response_format” is not the form of an answer.")
        fields["text"] = {"format": {"type": form["type"], **schema} if "type" in form else schema}
    if "instructions" in fields:
        fields["instructions"] = adapter.system("instructions", fields["instructions"])
    return convert_fields(fields, ResponseRequest, IGNORED, UNSUPPORTED, adapter.changes)

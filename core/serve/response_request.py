"""Requests of `/v1/responses`: their fields and input items, and the command made of them.

An answer's text and its calls are separate items there, and one turn here. The rules for unsupported fields
are those of chat completions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec
from msgspec import Struct, field

from core.events import Change, Grammar, Message, ModelInfo
from core.serve.conversation import Conversation
from core.serve.fields import (
    FORMS,
    change,
    convert_fields,
    effort_changes,
    refused,
    thinking_at,
    with_answer_form,
    with_tools,
)
from core.serve.http import field_error
from core.serve.request import AnswerRequest, limit

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

    input: tuple[Message, ...]
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
        return self.input

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
    conversation = Conversation("input")
    fields = with_answer_form(with_tools(fields, conversation.changes, custom=True))
    if isinstance(fields.get("instructions"), str):
        fields["instructions"] = conversation.system("instructions", fields["instructions"])
    given = fields.get("input")
    given = [{"role": "user", "content": given}] if isinstance(given, str) else given
    fields["input"] = conversation.read(given)
    if form := fields.pop("response_format", None):
        # Chat completions have the schema's fields one level deeper.
        schema = form.get("json_schema") or {} if isinstance(form, dict) else None
        if not isinstance(schema, dict):
            raise field_error("response_format", "“response_format” is not the form of an answer.")
        fields["text"] = {"format": {"type": form["type"], **schema} if "type" in form else schema}
    return convert_fields(fields, ResponseRequest, UNSUPPORTED, conversation.changes, conversation.unknown)

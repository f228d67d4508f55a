"""Requests for an answer: the tools and sampling fields of every API, and the command made of a request.

Each API has its own fields for the conversation, the tools and the form of the answer; `AnswerRequest` reads
them by methods and makes the command in one place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from core.events import Change, Generate, Grammar, Message, ModelInfo, Tool
from core.events.wire import well_formed_record
from core.serve.fields import OwnFields, change, refused, seed_of, settings_with
from core.serve.http import FieldNames, field_error
from core.serve.images import MOST_IMAGES, GivenImage
from core.settings import Settings
from core.settings.declaration import find
from core.tools.calls import ToolChoice
from core.tools.schemas import relaxed

_MOST_STOPS = 1000
_WHY_NOT_ENFORCED = "a grammar cannot enforce this keyword"
_WHY_UNSEEN = "this model does not see images"
_UNSEEN = f"[image left out: {_WHY_UNSEEN}]"
_CHOOSE_SEEING = "Load a vision model, or send only text."
# OpenAI's names have at most 64 characters and Anthropic's 128; tools of MCP servers reach that.
_NAME = re.compile(r"[\w.-]{1,128}", re.ASCII)


class GivenTool(Struct):
    """A function that the model may call, or a custom tool, whose input is any text.

    To the model a custom tool is a function of that text, with its grammar, which is not enforced, in the
    description.
    """

    name: str
    type: Literal["function", "custom"] = "function"
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool = False
    format: Any = None

    @property
    def declared(self) -> Tool:
        """The declaration for the model."""
        if self.type == "function":
            return Tool(self.name, self.description, msgspec.json.encode(self.parameters).decode())
        grammar = self.format.get("definition") if isinstance(self.format, dict) else None
        texts = [self.description, f"Grammar of the input:\n{grammar}" if grammar else ""]
        parameters = {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
            "additionalProperties": False,
        }
        return Tool(self.name, "\n\n".join(filter(None, texts)), msgspec.json.encode(parameters).decode())


class Choice(Struct):
    """Whether a call is allowed or required, and of which functions; without `names`, of any."""

    type: Literal["auto", "none", "required"] = "auto"
    names: list[str] = []
    disable_parallel_tool_use: bool = False


def choose(tools: Sequence[GivenTool], choice: Choice, *, several: bool = True) -> ToolChoice:
    """`choice` of `tools`. `several`: more than one call is allowed. Raises `ApiError` 400."""
    names = [tool.name for tool in tools]
    if odd := next((one for one in names if not _NAME.fullmatch(one)), None):
        raise field_error(
            "tools",
            f"“{odd[:80]}” is not a valid function name. Use at most 128 letters, digits, “_”, “-” and “.”.",
        )
    if doubled := next((one for one, count in Counter(names).items() if count > 1), None):
        raise field_error("tools", f"“tools” has “{doubled}” twice.")
    known, only = set(names), set(choice.names)
    if unknown := next((one for one in choice.names if one not in known), None):
        raise field_error("tool_choice", f"“tool_choice” names “{unknown}”, which is not in “tools”.")
    if "" in choice.names:
        raise field_error("tool_choice", "“tool_choice” has no name of a function.")
    must = choice.type == "required"
    if must and not tools:
        raise field_error("tool_choice", "“tool_choice” requires a call, but “tools” is empty.")
    if choice.type == "none":
        return ToolChoice()
    # The declarations stay whole where one function must be called: the prompt stays the same.
    whole = not only or (must and len(choice.names) == 1)
    declared = tuple(tool.declared for tool in tools if whole or tool.name in only)
    name = choice.names[0] if must and len(choice.names) == 1 else ""
    strict = frozenset(tool.name for tool in tools if tool.strict)
    several = several and not choice.disable_parallel_tool_use
    return ToolChoice(declared, must, name, several, strict)


class StreamOptions(Struct):
    """`include_obfuscation` protects against eavesdroppers; a local connection has none."""

    include_usage: bool = False
    include_obfuscation: bool = False


class AnswerRequest(OwnFields, kw_only=True):
    """A request for an answer, of any API, as `with_tools` and `ConversationReader` make it.

    `prompt_field` and `schema_field` name its fields in errors.
    """

    model: str = ""
    stream: bool = False
    tools: list[GivenTool] = field(default_factory=list)
    tool_choice: Choice = field(default_factory=Choice)
    parallel_tool_calls: bool = True
    stop: str | list[str] | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] = field(default_factory=dict)

    prompt_field: ClassVar[str] = "messages"
    schema_field: ClassVar[str] = "parameters"  # of a tool
    raw: ClassVar[bool] = False

    def generate(
        self, request: str, base: Settings, model: ModelInfo, longest_tokens: int
    ) -> tuple[Generate, list[Change]]:
        """The command, and the parts of the request that its answer does not honour.

        `longest_tokens` limits the answer if the request does not. Raises `ApiError` 400.
        """
        self.check()
        changes = [*self.changes, *self.unsupported(model)]
        tools, given = self.tool_use, self.answer_grammar()
        if tools.must and given is not None:
            raise refused(given[0], "a required call determines the answer's format")
        grammar = given[1] if given else tools.grammar(model)
        if grammar is not None:
            grammar, dropped = relaxed(grammar)
            changes += [self._not_enforced(path, value) for path, value in dropped]
            grammar = grammar if self.draftlight.forced else replace(grammar, drafts=False)
        messages = self._with_images(model, changes)
        if len(messages) > 1 and messages[-1] == Message("assistant", ""):
            messages = messages[:-1]  # clients add it where the answer is to be
        generate = well_formed_record(
            Generate(
                request,
                messages,
                settings_with(base, self._values(longest_tokens)),
                raw=self.raw,
                tools=tools.declared,
                stops=(*self.given_stops(), *tools.stops(model)),
                prediction=self.predicted,
                grammar=grammar,
                logit_bias=self.bias_of(),
                top_logprobs=self.logprobs_count(),
            )
        )
        return generate, changes

    def _not_enforced(self, path: str, value: Any) -> Change:
        """The change for a keyword of a schema that a grammar cannot enforce."""
        name = self.names.grammar
        # A tool's parameters are in the schema of its call, which no client has seen.
        own = ".properties.arguments" if name.startswith("tools[") else ""
        return change(f"{name}{path.removeprefix(own)}", value, "not enforced", _WHY_NOT_ENFORCED)

    @property
    def includes_usage(self) -> bool:
        """Whether a stream of chunks ends with one of usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def names(self) -> FieldNames:
        """The API's names of the fields that the worker may refuse."""
        given = self.answer_grammar()
        return FieldNames(self.prompt_field, given[0] if given else self.tool_use.field_of(self.schema_field))

    @cached_property
    def tool_use(self) -> ToolChoice:
        """The tools and which of them may or must be called. Raises `ApiError` 400."""
        return choose(self.tools, self.tool_choice, several=self.parallel_tool_calls)

    def bias_of(self) -> dict[int, float]:
        """Raises `ApiError` 400."""
        bias: dict[int, float] = {}
        for token, value in self.logit_bias.items():
            if not (token.isascii() and token.isdigit() and len(token) < 10) or not -100 <= value <= 100:
                raise field_error(
                    "logit_bias", "“logit_bias” maps ids of tokens to numbers from -100 to 100."
                )
            bias[int(token)] = value
        return bias

    @cached_property
    def images(self) -> list[GivenImage]:
        """Images of the messages; filled in as they are found, and described before `generate`."""
        return []

    @cached_property
    def seeing(self) -> list[str]:
        """Advice for the client if the model does not support images; filled in later."""
        return []

    def _with_images(self, model: ModelInfo, changes: list[Change]) -> tuple[Message, ...]:
        """The messages with their images, for `model`.

        If it does not see, words replace images that are replaceable, which is appended to `changes`. Raises
        `ApiError` 400 for others, and for images that are not read.
        """
        if not self.images:
            return self.conversation()
        if model.sees and len(self.images) > MOST_IMAGES:
            place, count = self.images[MOST_IMAGES].place, len(self.images)
            why = f"“{place}”: the request has {count} images, and at most {MOST_IMAGES} are allowed."
            raise field_error(place, f"{why} Send fewer images.", "too_many_images")
        for given in self.images:
            if model.sees and given.problem is not None:
                raise field_error(*given.problem, "invalid_image")
            if model.sees or given.replaceable:
                continue
            why = model.why_unseeing or "it has no part for images"
            raise field_error(
                given.place,
                f"“{given.place}” is an image, which {model.name} cannot see: {why}."
                f" {' '.join(self.seeing) or _CHOOSE_SEEING}",
                "model_does_not_see",
            )
        if model.sees:
            return tuple(map(self._seen, self.conversation()))
        changes += [change(given.place, "image", _UNSEEN, _WHY_UNSEEN) for given in self.images]
        return tuple(map(_unseen, self.conversation()))

    def _seen(self, message: Message) -> Message:
        found = []
        for each in message.images:
            image = self.images[int(each.path)].image
            assert image is not None, "images are described before the command is made"
            found.append(replace(image, at=each.at))
        return replace(message, images=tuple(found)) if found else message

    def _values(self, longest_tokens: int) -> Iterable[tuple[str, str, Any]]:
        limit = int(find("sampling.max_tokens").maximum or 0)
        name, most = self.most_tokens or ("max_tokens", longest_tokens)
        yield name, "sampling.max_tokens", min(most, limit)
        yield "seed", "sampling.seed", seed_of(self.seed)
        for name in ("temperature", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"):
            if (value := getattr(self, name)) is not None:
                yield name, f"sampling.{name}", value
        if self.top_p is not None:
            # 0 keeps the likeliest token only, as any small enough number does.
            yield "top_p", "sampling.top_p", self.top_p or 1e-9
        if self.top_k is not None:
            yield "top_k", "sampling.top_k", 0 if self.top_k == -1 else self.top_k
        # Draftlight's own fields come last: they take precedence.
        yield from self.own_settings()

    # ---- what each API has its own fields for; all raise `ApiError` 400

    @property
    def most_tokens(self) -> tuple[str, int] | None:
        """The field that limits the answer's length, and its value in tokens."""
        return None

    def check(self) -> None:
        """Refuse what would change the answer and is not supported."""

    def unsupported(self, model: ModelInfo) -> Iterable[Change]:
        """Fields that `model` does not support and that do not fail the request."""
        return ()

    def conversation(self) -> tuple[Message, ...]:
        """The messages. Each API has them."""
        raise NotImplementedError

    def answer_grammar(self) -> tuple[str, Grammar] | None:
        """The form of the answer, and the field that requires it."""
        return None

    def given_stops(self) -> tuple[str, ...]:
        """Stop sequences."""
        return stops_of("stop", (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()))

    def logprobs_count(self) -> int | None:
        """Alternatives per token whose probabilities are returned; None: no probabilities at all."""
        return None

    @property
    def predicted(self) -> str:
        """Text that the answer will probably have; empty if unknown."""
        return ""


def _unseen(message: Message) -> Message:
    """`message` with a line of words in place of each image."""
    content = message.content
    for each in reversed(message.images):
        lines = (content[: each.at].rstrip("\n"), _UNSEEN, content[each.at :].lstrip("\n"))
        content = "\n".join(filter(None, lines))
    return replace(message, content=content, images=())


def limit(name: str, tokens: int | None) -> tuple[str, int] | None:
    """The field `name` and its limit; None without a limit, which clients write as null or -1."""
    return None if tokens is None or tokens == -1 else (name, tokens)


def stops_of(name: str, stops: tuple[str, ...]) -> tuple[str, ...]:
    """`stops`, the value of the field `name`. Raises `ApiError` 400."""
    if len(stops) > _MOST_STOPS:
        raise field_error(name, f"“{name}” accepts at most {_MOST_STOPS} texts.")
    if "" in stops:
        raise field_error(name, f"“{name}” has an empty text, which would end every answer at once.")
    return stops

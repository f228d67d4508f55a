"""Written: an answer's tokens as its thought, its text and its calls, in order. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from json import dumps

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format import (
    AnswerFormat,
    AnswerParser,
    CallArguments,
    CallBegun,
    Delta,
    Text,
    Thought,
)
from core.events import Change, Token, Tool
from core.serve.schemas import SchemaCheck
from core.serve.tools.forced_call import ForcedCall


class CallRules(Struct, frozen=True):
    """What a request says about the calls in its answer.

    Without `tools` nothing is a call. `forced`: a grammar makes the answer one call. `most`: further calls
    are dropped. `loose`: a tool is strict, and nothing makes the model keep its schema.
    """

    tools: tuple[Tool, ...] = ()
    forced: bool = False
    most: int | None = None
    loose: bool = False


_CUT_OFF = "the answer ended within the call, or the model did not write it as a call is written"
_LOOSE = Change(
    "tools.strict",
    "true",
    "false",
    "this model's calls that need not be made are free; “tool_choice” “required” keeps their schema",
)


class Written:
    """One answer; its first token says in which format it is written. `calls` counts the calls so far.

    `streams`: the arguments of calls are given while they are written.
    """

    def __init__(self, rules: CallRules, check: SchemaCheck | None = None, *, streams: bool = False) -> None:
        self._rules = rules
        self._streams = streams
        self._check = check
        self._text: list[str] = []  # what is checked, with the calls
        self._called: list[list[str]] = []  # the name and the arguments of each
        self._parser: AnswerParser | ForcedCall | None = None
        self.thought_tokens = 0
        self.calls = 0

    @property
    def changes(self) -> tuple[Change, ...]:
        """What of the schemas in the request was not enforced, and calls that are not whole. At the end."""
        found = [_LOOSE] if self._rules.loose else []
        if isinstance(self._parser, AnswerParser):
            found += [Change("tools", name, "incomplete", _CUT_OFF) for name in self._parser.cut_off]
        if self._check is None:
            return tuple(found)
        if not self._check.calls:
            return (*found, *self._check.changes(["".join(self._text)]))
        calls = [f'{{"name":{dumps(name)},"arguments":{"".join(more)}}}' for name, *more in self._called]
        return (*found, *self._check.changes(calls))

    def add(self, tokens: Sequence[Token]) -> Iterator[Delta]:
        """More tokens. Text that belongs together comes in one piece."""
        found: list[Delta] = []
        for token in tokens:
            if self._parser is None:
                self._parser = self._begin(token.format or AnswerFormat())
            more = self._parser.add(token.text)
            if self._check is not None and not self._check.calls:
                self._text.append(token.text)
            self.thought_tokens += self._parser.in_thought or any(isinstance(one, Thought) for one in more)
            found += more
        return self._kept(found)

    def end(self) -> Iterator[Delta]:
        """There are no more tokens; returns what was held back."""
        return self._kept(self._parser.end() if self._parser else [])

    def _begin(self, format: AnswerFormat) -> AnswerParser | ForcedCall:
        if self._rules.forced:
            return ForcedCall()
        tools = self._rules.tools
        format = format if tools else format.without_calls()
        return AnswerParser(format, tools, streams_calls=self._streams)

    def _remember(self, delta: CallBegun | CallArguments) -> None:
        if isinstance(delta, CallBegun):
            self._called.append([delta.name])
        else:
            self._called[-1].append(delta.text)

    def _kept(self, deltas: Iterable[Delta]) -> Iterator[Delta]:
        last: Thought | Text | None = None
        for delta in deltas:
            if isinstance(delta, CallBegun | CallArguments):
                if last is not None:
                    yield last
                    last = None
                if self._rules.most is not None and delta.index >= self._rules.most:
                    continue
                if self._check is not None and self._check.calls:
                    self._remember(delta)
                if isinstance(delta, CallBegun):
                    self.calls += 1
                    delta = replace(delta, id=f"call_{secrets.token_hex(12)}")
                yield delta
            elif last is not None and type(last) is type(delta):
                last = replace(last, text=last.text + delta.text)
            else:
                if last is not None:
                    yield last
                last = delta
        if last is not None:
            yield last

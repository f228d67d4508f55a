"""GrammarState: where an answer stands in its grammar, and what may come at each row of a block.

What may come after a path is a function of the path alone, so a drafted run is masked like a plain one.
Three cases:

    forced    the grammar's text goes on in one way only, and so do its tokens: llguidance's fast-forward
              tokens, the canonical tokenisation of the forced text as far as no token of what follows can
              take a part of it. Then exactly the next of them may come, drafted or not. So a forced draft is
              always accepted, and the same answer is written without it.
    open      what llguidance's mask allows; the model's stop tokens where the text may end.
    complete  the stop tokens and nothing else.

Forced tokens are worked out where the last ones end, from there on they are known: a path is
walked by its tokens from the answer's first on. A path that the grammar does not allow has no rows;
a matcher that fails (a limit of the grammar was reached) allows nothing.

Knows no model and no drafter. Worker's main thread.

Grammars: what an answer must be, compiled for one model's tokenizer by llguidance.

Calls of tools that need not be made stand among free text: a call's mark begins its grammar.

A schema's JSON is written on one line, `{"name": "value", "next": [1, 2]}`, so that everything but the
values is forced and can be drafted. Who wants other whitespace says so in the schema (llguidance's
`x-guidance`). Keywords that llguidance does not know are refused, not ignored.

llguidance is imported when the first grammar is asked for; then the tokenizer is bridged once a model
(0.7 s for 49,152 tokens) and each grammar compiled anew (milliseconds). Worker's main thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.drafting.draft import EMPTY, Draft
from core.errors import GrammarError
from core.events import Grammar
from core.models.loader import LoadedModel

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from llguidance._lib import JsonCompileOptions

# More are verified in the blocks that follow: no drafter makes wider blocks either.
MOST_FORCED_TOKENS = 64


class _Place:
    """A place on a path: the matcher there, and the forced tokens that come next. Never changed."""

    __slots__ = ("forced", "matcher")

    def __init__(self, matcher: LLMatcher, eos: frozenset[int], forced: tuple[int, ...] = ()) -> None:
        self.matcher = matcher
        self.forced = forced or _text_only(matcher.compute_ff_tokens(), eos)


class GrammarState:
    """Of one answer. `eos` are the model's stop ids, which end a path.

    `drafts`: what is forced is to be drafted.
    """

    def __init__(self, matcher: LLMatcher, eos: frozenset[int], *, drafts: bool) -> None:
        self._eos = eos
        self._here = _Place(matcher, eos)
        self.drafts = drafts

    @property
    def forced(self) -> tuple[int, ...]:
        """The tokens that come next for certain, at most so many as go into a block."""
        return self._here.forced[:MOST_FORCED_TOKENS]

    @property
    def forces(self) -> int:
        """How many tokens are forced here."""
        return len(self._here.forced)

    @property
    def failure(self) -> str:
        """Why nothing may come any more, though the text is not complete; empty if something may."""
        return str(self._here.matcher.get_error())

    def advance(self, tokens: Sequence[int]) -> None:
        """The answer goes on with `tokens`. Raises `GrammarError` if the grammar does not allow them."""
        for token in tokens:
            if token in self._eos:
                return
            place = self._after(self._here, token)
            if place is None:
                raise GrammarError(
                    f"The grammar does not take the answer's token {token:,}: {self._why_not(token)}.",
                    "An answer that was begun without the grammar cannot go on by it.",
                )
            self._here = place

    def admit(self, draft: Draft, lead: Sequence[int] = ()) -> Draft:
        """The nodes of `draft`, drafted behind `lead`, that the grammar allows."""
        place: _Place | None = self._here
        for token in lead:
            place = self._after(place, token) if place else None
        places = [place]
        kept: list[int] = []
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents)):
            above = places[parent + 1]
            places.append(self._after(above, token) if above else None)
            if places[-1] is not None or (above and token in self._eos and self._may_end(above)):
                kept.append(node)
        if len(kept) == len(draft):
            return draft
        at = {-1: -1} | {node: index for index, node in enumerate(kept)}
        return Draft(
            tuple(draft.tokens[node] for node in kept),
            tuple(at[draft.parents[node]] for node in kept),
            tuple(draft.confidence[node] for node in kept) if draft.confidence else (),
        )

    def allowed(self, draft: Draft, vocabulary: int) -> NDArray[np.bool_]:
        """What may come: bool [1 + len(draft), vocabulary]; nothing behind nodes that are not allowed."""
        allowed = np.zeros((1 + len(draft), vocabulary), dtype=np.bool_)
        places: list[_Place | None] = [self._here]
        self._fill(allowed[0], self._here)
        for row, (token, parent) in enumerate(zip(draft.tokens, draft.parents), 1):
            above = places[parent + 1]
            place = self._after(above, token) if above else None
            places.append(place)
            if place is not None:
                self._fill(allowed[row], place)
        return allowed

    def _after(self, place: _Place, token: int) -> _Place | None:
        """The place behind `token`; None if it may not come there or ends the text."""
        if token in self._eos or (place.forced and token != place.forced[0]):
            return None
        matcher = place.matcher.deep_copy()
        if matcher.try_consume_tokens([token]) != 1:
            return None
        return _Place(matcher, self._eos, place.forced[1:])

    def _why_not(self, token: int) -> str:
        matcher = self._here.matcher.deep_copy()
        matcher.try_consume_tokens([token])
        return str(matcher.get_error()) or "something else must come"

    def _may_end(self, place: _Place) -> bool:
        return not place.forced and bool(place.matcher.is_accepting())

    def _fill(self, row: NDArray[np.bool_], place: _Place) -> None:
        if place.forced:
            row[place.forced[0]] = True
            return
        matcher = place.matcher
        if not matcher.is_stopped():
            bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
            width = min(len(row), 8 * len(bits))
            row[:width] = np.unpackbits(bits, bitorder="little", count=width)
            if matcher.is_error():
                row[:] = False
                return
        row[[token for token in self._eos if token < len(row)]] = self._may_end(place)


def _text_only(tokens: Sequence[int], eos: frozenset[int]) -> tuple[int, ...]:
    """`tokens` up to the first that ends the text."""
    end = next((at for at, token in enumerate(tokens) if token in eos), len(tokens))
    return tuple(tokens[:end])


_ON_ONE_LINE: JsonCompileOptions = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}
_ANY_OBJECT = '{"type": "object"}'
_MOST_ERROR_CHARS = 400
# What may stand in a Lark grammar for a token.
_TOKEN = re.compile(r"<[^<>\s]+>")


class Grammars:
    """Of one loaded model."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._tokenizer: LLTokenizer | None = None

    def start(self, grammar: Grammar) -> GrammarState:
        """`grammar` at its beginning. Raises `GrammarError`, with the compiler's message."""
        from llguidance import LLMatcher, LLParserLimits

        eos = self._model.eos
        if not eos:
            raise GrammarError(
                f"{self._model.info.name} names no end-of-text token: a grammar could never end its answer.",
                "Choose a model that names one.",
            )
        tokenizer = self._bridged()
        text = _ANY_OBJECT if grammar.kind == "json_object" else grammar.text
        schema = _object(text)
        try:
            if grammar.kind == "tool_calls":
                compiled = LLMatcher.grammar_from_lark(self._calls(grammar, schema))
            else:
                compiled = LLMatcher.grammar_from_json_schema(text, defaults=_ON_ONE_LINE)
        except ValueError as error:  # nested too deeply, half a surrogate pair
            raise _refusal(str(error)) from None
        # Verbose messages tell the parser's insides.
        limits = LLParserLimits(verbose_errors=False)
        matcher = LLMatcher(tokenizer, compiled, log_level=0, limits=limits)
        if matcher.is_error():
            raise _refusal(matcher.get_error())
        state = GrammarState(matcher, eos, drafts=grammar.drafts)
        if not state.allowed(EMPTY, self._model.info.vocabulary).any():
            raise _refusal(f"no text fits it ({state.failure})")
        return state

    def _calls(self, grammar: Grammar, schema: dict[str, Any]) -> str:
        """Text, and calls in it. A mark that the model has as a control token is one: no text is.

        Such tokens of thoughts may stand in the text, too.
        """
        tokenizer = self._model.tokenizer
        special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}

        def mark(text: str) -> str:
            return text if text in special and _TOKEN.fullmatch(text) else json.dumps(text)

        thoughts = [mark(tag) for tag in (tokenizer.think_start, tokenizer.think_end) if tag in special]
        begin, end = mark(grammar.begin), mark(grammar.end)
        call = json.dumps({"x-guidance": _ON_ONE_LINE} | schema)
        # Lazy: the text ends where the mark does, so that what follows is a call's.
        lazy = "" if grammar.begin in special else "[lazy]"
        return "\n".join(
            [
                "%llguidance {}",
                f"start: (call{' | thought' if thoughts else ''})* text",
                "text: TEXT",
                "TEXT: /(.|\\n)*/",
                f'call: begun "\\n" %json {call} "\\n" {end}',
                f"begun{lazy}: TEXT {begin}",
                *([f"thought: TEXT ({' | '.join(thoughts)})"] if thoughts else []),
            ]
        )

    def _bridged(self) -> LLTokenizer:
        """The tokenizer as llguidance takes it. Raises `GrammarError` if it cannot be bridged."""
        from llguidance import LLTokenizer

        if self._tokenizer is None:
            model = self._model
            fast = getattr(model.tokenizer, "backend_tokenizer", None)
            if fast is None:
                raise GrammarError(
                    f"The tokenizer of {model.info.name} has no tokenizer.json, which grammars need.",
                    "Ask without a grammar, or choose another model.",
                )
            try:
                fast = copy(fast)
                fast.no_padding()
                fast.no_truncation()
                self._tokenizer = LLTokenizer(
                    _with_rows(fast, model.info.vocabulary),
                    n_vocab=model.info.vocabulary,
                    eos_token=sorted(model.eos),
                )
            except Exception as error:  # it raises ValueError and what its Rust half panics with
                raise GrammarError(
                    f"The tokenizer of {model.info.name} cannot be used with grammars: {_line(str(error))}.",
                    "Ask without a grammar, or choose another model.",
                ) from error
        return self._tokenizer


def _with_rows(fast: Any, rows: int) -> str:
    """`fast` as tokenizer.json, without added tokens above the embedding rows: a grammar would force them."""
    text = str(fast.to_str())
    if max(fast.get_added_tokens_decoder(), default=0) < rows:
        return text
    content = json.loads(text)
    content["added_tokens"] = [token for token in content["added_tokens"] if token["id"] < rows]
    return json.dumps(content)


def _object(text: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(f"it is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise _refusal("it is not a JSON object")
    return schema


def _refusal(message: str) -> GrammarError:
    return GrammarError(
        f"The JSON schema cannot be compiled: {_line(message)}.",
        "Change the schema. Keywords that are not supported are refused, not ignored.",
    )


def _line(message: str) -> str:
    """`message`, which may have lines and pictures, on one line."""
    return " ".join(message.split())[:_MOST_ERROR_CHARS].rstrip(".")

"""Grammars: constraints on an answer, compiled by llguidance for one model's tokenizer, and the mask at each
row.

llguidance is imported when the first grammar is used; the tokenizer is then bridged once per model (0.7 s for
49,152 tokens), and each grammar is compiled again (milliseconds). Worker's main thread.
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

# More are verified in the following blocks: no drafter makes wider blocks either.
MOST_FORCED_TOKENS = 64


class _Position:
    """A position on a path: its matcher, and the forced tokens that follow. Immutable."""

    __slots__ = ("forced", "matcher")

    def __init__(self, matcher: LLMatcher, eos: frozenset[int], forced: tuple[int, ...] = ()) -> None:
        self.matcher = matcher
        self.forced = forced or _text_only(matcher.compute_ff_tokens(), eos)


class GrammarState:
    """The position of one answer in its grammar, and the allowed tokens at each row of a block.

    The tokens allowed after a path depend on the path alone, so a drafted run is masked like a plain one.
    Three cases:

        forced    the grammar's text continues in one way only, and so do its tokens: llguidance's
                  fast-forward tokens, the canonical tokenisation of the forced text as far as no later token
                  can absorb a part of it. Exactly the next of them is allowed, drafted or not. A forced draft
                  is therefore always accepted, and the answer is the same without drafts.
        open      llguidance's mask, and the model's stop tokens where the text may end.
        complete  the stop tokens only.

    Forced tokens are computed where the previous ones end and then followed token by token. A path that the
    grammar rejects allows nothing, and neither does a matcher that failed (a limit of the grammar was
    reached).

    `eos` are the model's stop ids, which end a path.
    """

    def __init__(self, matcher: LLMatcher, eos: frozenset[int]) -> None:
        self._eos = eos
        self._current = _Position(matcher, eos)

    @property
    def forced(self) -> tuple[int, ...]:
        """The forced tokens that follow, at most as many as fit into a block."""
        return self._current.forced[:MOST_FORCED_TOKENS]

    @property
    def forced_count(self) -> int:
        """Number of forced tokens that follow."""
        return len(self._current.forced)

    @property
    def failure(self) -> str:
        """Why nothing is allowed although the text is incomplete; empty if something is."""
        return str(self._current.matcher.get_error())

    def advance(self, tokens: Sequence[int]) -> None:
        """Appends `tokens` to the answer. Raises `GrammarError` if the grammar does not allow them."""
        for token in tokens:
            if token in self._eos:
                return
            position = self._advanced(self._current, token)
            if position is None:
                raise GrammarError(
                    f"The grammar does not allow the answer's token {token:,}: {self._why_not(token)}.",
                    "An answer that was begun without a grammar cannot continue with one.",
                )
            self._current = position

    def filter_draft(self, draft: Draft, lead: Sequence[int] = ()) -> Draft:
        """The nodes of `draft`, drafted after `lead`, that the grammar allows."""
        position: _Position | None = self._current
        for token in lead:
            position = self._advanced(position, token) if position else None
        positions = [position]
        kept: list[int] = []
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents)):
            above = positions[parent + 1]
            positions.append(self._advanced(above, token) if above else None)
            if positions[-1] is not None or (above and token in self._eos and self._may_end(above)):
                kept.append(node)
        return draft.part(kept)

    def allowed(self, draft: Draft, vocabulary: int) -> NDArray[np.bool_]:
        """The mask: bool [1 + len(draft), vocabulary]; all False after nodes that are not allowed."""
        allowed = np.zeros((1 + len(draft), vocabulary), dtype=np.bool_)
        positions: list[_Position | None] = [self._current]
        self._fill(allowed[0], self._current)
        for row, (token, parent) in enumerate(zip(draft.tokens, draft.parents), 1):
            above = positions[parent + 1]
            position = self._advanced(above, token) if above else None
            positions.append(position)
            if position is not None:
                self._fill(allowed[row], position)
        return allowed

    def _advanced(self, position: _Position, token: int) -> _Position | None:
        """The position after `token`; None if it is not allowed or ends the text."""
        if token in self._eos or (position.forced and token != position.forced[0]):
            return None
        matcher = position.matcher.deep_copy()
        if matcher.try_consume_tokens([token]) != 1:
            return None
        return _Position(matcher, self._eos, position.forced[1:])

    def _why_not(self, token: int) -> str:
        matcher = self._current.matcher.deep_copy()
        matcher.try_consume_tokens([token])
        return str(matcher.get_error()) or "another token is required"

    def _may_end(self, position: _Position) -> bool:
        return not position.forced and bool(position.matcher.is_accepting())

    def _fill(self, row: NDArray[np.bool_], position: _Position) -> None:
        if position.forced:
            row[position.forced[0]] = True
            return
        matcher = position.matcher
        if not matcher.is_stopped():
            bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
            width = min(len(row), 8 * len(bits))
            row[:width] = np.unpackbits(bits, bitorder="little", count=width)
            if matcher.is_error():
                row[:] = False
                return
        row[[token for token in self._eos if token < len(row)]] = self._may_end(position)


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
# Tokens that a Lark grammar can name.
_TOKEN = re.compile(r"<[^<>\s]+>")


class Grammars:
    """The grammars of one loaded model.

    A schema's JSON is written on one line, `{"name": "value", "next": [1, 2]}`, so everything except the
    values is forced and can be drafted. A schema can request other whitespace (llguidance's `x-guidance`).
    Unsupported keywords are rejected, not ignored.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._tokenizer: LLTokenizer | None = None

    def start(self, grammar: Grammar) -> GrammarState:
        """`grammar` at its beginning. Raises `GrammarError` with the compiler's message."""
        from llguidance import LLMatcher, LLParserLimits

        eos = self._model.eos
        if not eos:
            raise GrammarError(
                f"{self._model.info.name} has no end-of-text token, so a grammar could not end its answer.",
                "Choose a model that has one.",
            )
        tokenizer = self._bridged()
        text = _ANY_OBJECT if grammar.kind == "json_object" else grammar.text
        schema = _object(text)
        try:
            if grammar.kind == "tool_calls":
                compiled = LLMatcher.grammar_from_lark(self._calls(grammar, schema))
            else:
                compiled = LLMatcher.grammar_from_json_schema(text, defaults=_ON_ONE_LINE)
        except ValueError as error:  # nested too deeply, or an unpaired surrogate
            raise _schema_error(str(error)) from None
        # Verbose messages expose the parser's internals.
        limits = LLParserLimits(verbose_errors=False)
        matcher = LLMatcher(tokenizer, compiled, log_level=0, limits=limits)
        if matcher.is_error():
            raise _schema_error(matcher.get_error())
        state = GrammarState(matcher, eos)
        if not state.allowed(EMPTY, self._model.info.vocabulary).any():
            raise _schema_error(f"no text fits it ({state.failure})")
        return state

    def _calls(self, grammar: Grammar, schema: dict[str, Any]) -> str:
        """A Lark grammar of free text and tool calls. A call's mark that is a control token of the model is
        matched as one, never as text. The model's control tokens for thoughts may also occur in the text.
        """
        tokenizer = self._model.tokenizer
        special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}

        def mark(text: str) -> str:
            return text if text in special and _TOKEN.fullmatch(text) else json.dumps(text)

        thoughts = [mark(tag) for tag in (tokenizer.think_start, tokenizer.think_end) if tag in special]
        begin, end = mark(grammar.begin), mark(grammar.end)
        call = json.dumps({"x-guidance": _ON_ONE_LINE} | schema)
        # Lazy: the text ends at the mark, so that the following text belongs to the call.
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
        """The tokenizer in llguidance's form. Raises `GrammarError` if it cannot be converted."""
        from llguidance import LLTokenizer

        if self._tokenizer is None:
            model = self._model
            fast = getattr(model.tokenizer, "backend_tokenizer", None)
            if fast is None:
                raise GrammarError(
                    f"The tokenizer of {model.info.name} has no tokenizer.json, which grammars need.",
                    "Send the request without a grammar, or choose another model.",
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
            except Exception as error:  # raises ValueError, and panics of its Rust part
                raise GrammarError(
                    f"The tokenizer of {model.info.name} does not support grammars: {_one_line(str(error))}.",
                    "Send the request without a grammar, or choose another model.",
                ) from error
        return self._tokenizer


def _with_rows(fast: Any, rows: int) -> str:
    """`fast` as tokenizer.json, without added tokens above the embedding rows, which a grammar would
    otherwise force.
    """
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
        raise _schema_error(f"it is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise _schema_error("it is not a JSON object")
    return schema


def _schema_error(message: str) -> GrammarError:
    return GrammarError(
        f"The JSON schema cannot be compiled: {_one_line(message)}.",
        "Change the schema. Unsupported keywords are rejected, not ignored.",
    )


def _one_line(message: str) -> str:
    """`message`, which may have several lines, on one line."""
    return " ".join(message.split())[:_MOST_ERROR_CHARS].rstrip(".")

"""Grammars: what an answer must be, compiled for one model's tokenizer by llguidance.

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
from copy import copy
from typing import TYPE_CHECKING, Any

from core.decoding.grammar.state import GrammarState
from core.drafting.draft import EMPTY
from core.errors import GrammarError
from core.events import Grammar
from core.models.loader import LoadedModel

if TYPE_CHECKING:
    from llguidance import LLTokenizer
    from llguidance._lib import JsonCompileOptions

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

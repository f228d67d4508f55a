"""An answer that was ended and is gone on with: what it would have been, from the very tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from core.engine.engine import Engine
from core.errors import GrammarError, RequestError
from core.events import Generate, Grammar, Message, Token
from core.settings import Settings, assign_all
from tests.core.engine.support import written

QUESTION = (Message("user", "abcabcabc and again abcabcabc"),)
TOKENS = 40


BY_SCHEMA = Grammar("json_schema", '{"type": "array", "items": {"type": "integer"}, "minItems": 30}')
# Settings, and other wishes: what an answer began with counts for each.
WISHES: dict[str, tuple[dict[str, object], dict[str, Any]]] = {
    "greedy": ({}, {}),
    "sampled": ({"sampling.temperature": 0.9}, {}),
    "penalised": ({"sampling.frequency_penalty": 0.9, "sampling.temperature": 0.4}, {}),
    "by a schema": ({}, {"grammar": BY_SCHEMA}),
}


def chosen(drafter: str = "off", **values: object) -> Settings:
    usual = {"drafting.drafter": drafter, "ngram_simple.n_min": 1, "gate.mode": "always"}
    return assign_all(Settings(), {"sampling.max_tokens": TOKENS, **usual, **values}.items())


def ids(tokens: Sequence[Token]) -> tuple[int, ...]:
    return tuple(token.id for token in tokens)


@pytest.mark.parametrize("drafter", ["off", "ngram-simple"])
@pytest.mark.parametrize("wish", WISHES)
def test_in_parts_it_is_what_it_would_have_been(toy_engine: Engine, drafter: str, wish: str) -> None:
    values, also = WISHES[wish]
    request = Generate("r", QUESTION, chosen(drafter, **values), **also)
    toy_engine.forget()
    whole, end = written(toy_engine.generate(request))
    assert end.reason == "length"
    toy_engine.forget()
    so_far: list[Token] = []
    for tokens in (1, 9, TOKENS - 10):
        limited = assign_all(request.settings, [("sampling.max_tokens", tokens)])
        part, last = written(
            toy_engine.generate(replace(request, settings=limited, continuation=ids(so_far)))
        )
        assert last.stats.prompt_tokens == end.stats.prompt_tokens + len(so_far)
        # Nothing but the last token is read again.
        assert not so_far or last.stats.read_tokens == 1
        # Each part counts its own.
        assert [token.position for token in part] == list(range(tokens))
        so_far += part
    assert ids(so_far) == ids(whole)
    # And after the cache was lost.
    toy_engine.forget()
    rest, last = written(toy_engine.generate(replace(request, continuation=ids(whole[:25]))))
    assert ids(rest)[: TOKENS - 25] == ids(whole[25:])
    assert last.stats.reused_tokens == 0


def test_what_a_grammar_does_not_allow_cannot_go_on(toy_engine: Engine) -> None:
    with pytest.raises(GrammarError, match="does not allow"):
        list(toy_engine.generate(Generate("r", QUESTION, chosen(), grammar=BY_SCHEMA, continuation=(40, 40))))


def test_a_token_that_the_model_does_not_know_is_refused(toy_engine: Engine) -> None:
    known = toy_engine.loaded.info.vocabulary
    for strange in (known, -1):
        with pytest.raises(RequestError, match=f"the token {strange}"):
            list(toy_engine.generate(Generate("r", QUESTION, chosen(), continuation=(7, strange))))

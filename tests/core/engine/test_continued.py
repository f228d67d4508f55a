"""An answer that was ended and is gone on with: what it would have been, from the very tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.engine.engine import Engine
from core.errors import RequestError
from core.events import Event, Finished, Generate, Message, Token
from core.settings import Settings, assign_all

QUESTION = (Message("user", "abcabcabc and again abcabcabc"),)
TOKENS = 40


def chosen(drafter: str = "off", temperature: float = 0.0, tokens: int = TOKENS) -> Settings:
    values: list[tuple[str, object]] = [
        ("drafting.drafter", drafter),
        ("sampling.temperature", temperature),
        ("sampling.max_tokens", tokens),
        ("ngram_simple.n_min", 1),
        ("gate.mode", "always"),
    ]
    return assign_all(Settings(), values)


def answer(engine: Engine, request: Generate) -> tuple[list[Token], Finished]:
    events: list[Event] = list(engine.generate(request))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event for event in events if isinstance(event, Token)], finished


def ids(tokens: Sequence[Token]) -> tuple[int, ...]:
    return tuple(token.id for token in tokens)


def in_parts(
    engine: Engine, messages: tuple[Message, ...], settings: Settings, lengths: Sequence[int]
) -> tuple[list[Token], list[Finished]]:
    """The answer, ended after each of `lengths` and gone on with."""
    written: list[Token] = []
    ends: list[Finished] = []
    for tokens in lengths:
        limited = assign_all(settings, [("sampling.max_tokens", tokens)])
        part, end = answer(engine, Generate("r", messages, limited, continuation=ids(written)))
        written += part
        ends.append(end)
    return written, ends


@pytest.mark.parametrize("drafter", ["off", "ngram-simple"])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("lengths", [(1, TOKENS - 1), (17, TOKENS - 17), (7, 9, 24)])
def test_in_parts_it_is_what_it_would_have_been(
    toy_engine: Engine, drafter: str, temperature: float, lengths: Sequence[int]
) -> None:
    settings = chosen(drafter, temperature)
    toy_engine.forget()
    whole, end = answer(toy_engine, Generate("r", QUESTION, settings))
    assert end.reason == "length"
    toy_engine.forget()
    written, ends = in_parts(toy_engine, QUESTION, settings, lengths)
    assert ids(written) == ids(whole)
    prompt = end.stats.prompt_tokens
    for before, part in zip(np.cumsum(lengths), ends[1:]):
        # Nothing but the last token is read again.
        assert part.stats.reused_tokens == prompt + before - 1
        assert part.stats.prompt_tokens == prompt + before
    # Each part counts its own.
    assert [token.position for token in written] == [n for length in lengths for n in range(length)]


def test_after_the_cache_was_lost_it_is_read_again(toy_engine: Engine) -> None:
    settings = chosen()
    toy_engine.forget()
    whole, _ = answer(toy_engine, Generate("r", QUESTION, settings))
    toy_engine.forget()
    rest, end = answer(toy_engine, Generate("r", QUESTION, settings, continuation=ids(whole[:25])))
    assert ids(rest)[:15] == ids(whole[25:])
    assert end.stats.reused_tokens == 0


def test_a_token_that_the_model_does_not_know_is_refused(toy_engine: Engine) -> None:
    known = toy_engine.loaded.info.vocabulary
    for strange in (known, -1):
        with pytest.raises(RequestError, match=f"the token {strange}"):
            list(toy_engine.generate(Generate("r", QUESTION, chosen(), continuation=(7, strange))))


@pytest.mark.sweep
def test_the_starter_model_goes_on_token_for_token(starter_engine: Engine) -> None:
    question = (Message("user", "Write the days of the week twice, as a list."),)
    starter_engine.forget()
    whole, _ = answer(starter_engine, Generate("r", question, chosen(tokens=15)))
    for drafter in ("off", "ngram-simple"):
        settings = chosen(drafter, tokens=15)
        starter_engine.forget()
        written, ends = in_parts(starter_engine, question, settings, (3, 5, 7))
        assert ids(written) == ids(whole)
        assert "".join(token.text for token in written) == "".join(token.text for token in whole)
        assert ends[-1].stats.reused_tokens == ends[-1].stats.prompt_tokens - 1
    # Back to what was written first, with all of it in the cache.
    rest = chosen("ngram-simple", tokens=12)
    other, _ = answer(starter_engine, Generate("r", question, rest, continuation=ids(whole[:3])))
    assert ids(other) == ids(whole[3:])

"""Isolated answers: they start from nothing whatever was asked before, and leave everything as it was."""

from __future__ import annotations

from core.engine.engine import Engine
from core.events import Finished, Generate, Message, Token
from core.settings import Settings, assign_all

LIST = "Say this list again, three times:\nlanterns\nropes\nanchors\nsignal flags\ncharts\n"
QUESTION = (Message("user", LIST),)


def settings(drafter: str) -> Settings:
    values = [("drafting.drafter", drafter), ("sampling.max_tokens", 48), ("gate.mode", "always")]
    return assign_all(Settings(), values)


def ask(
    engine: Engine, messages: tuple[Message, ...], chosen: Settings, *, isolated: bool
) -> tuple[list[Token], Finished]:
    events = list(engine.generate(Generate("r", messages, chosen, isolated=isolated)))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event for event in events if isinstance(event, Token)], finished


def test_it_starts_from_nothing(toy_engine: Engine) -> None:
    toy_engine.forget(tables=True)
    chosen = settings("ngram-mod")
    first, cold = ask(toy_engine, QUESTION, chosen, isolated=False)
    again, warm = ask(toy_engine, QUESTION, chosen, isolated=False)
    apart, ended = ask(toy_engine, QUESTION, chosen, isolated=True)
    assert [t.id for t in first] == [t.id for t in again] == [t.id for t in apart]
    # Both the cache and the table knew the second answer.
    assert warm.stats.reused_tokens > 0
    assert warm.stats.accepted > cold.stats.accepted
    assert ended.stats.reused_tokens == 0
    assert ended.stats.read_tokens == ended.stats.prompt_tokens
    assert ended.stats.accepted == cold.stats.accepted


def test_it_leaves_everything_as_it_was(toy_engine: Engine) -> None:
    toy_engine.forget(tables=True)
    chosen = settings("ngram-mod")
    told, first = ask(toy_engine, QUESTION, chosen, isolated=False)
    sequence, held = toy_engine.sequence, list(toy_engine.sequence.tokens)
    table = toy_engine.memory.tables.of_family(toy_engine.loaded.info.family)[0]
    inserts = table.figures().inserts
    other = (Message("user", "Tell me of the sea, in many words."),)
    ask(toy_engine, other, chosen, isolated=True)
    assert toy_engine.sequence is sequence
    assert sequence.tokens == held
    assert table.figures().inserts == inserts
    answer = Message("assistant", "".join(token.text for token in told))
    _, second = ask(toy_engine, (*QUESTION, answer, Message("user", "Thanks.")), chosen, isolated=False)
    assert second.stats.reused_tokens >= first.stats.prompt_tokens

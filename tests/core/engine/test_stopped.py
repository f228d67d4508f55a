"""Requests stopped in every phase, at prompts around the context's length; the chat goes on afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from core.engine.engine import Engine
from core.errors import PromptTooLongError
from core.events import Attachment, Event, Finished, Generate, Message, PrefillProgress, ReadingMap, Token
from core.settings import Settings
from tests.core.engine.test_reading_on import DOCUMENT, FIRST, SECOND
from tests.core.engine.test_sparse_session import endless, settings
from tests.core.toy import write_toy_model
from tests.thinned import thinned

MODEL_TOKENS = 512
MOST_TOKENS = 24

Phase = Literal["rendered", "scoring", "reading", "mapped", "first token", "writing"]
# How far into its phase a request is stopped: after so many events of that phase.
PHASES: dict[Phase, tuple[type, ...]] = {
    "rendered": (PrefillProgress, ReadingMap, Token),
    "scoring": (PrefillProgress,),
    "reading": (PrefillProgress,),
    "mapped": (ReadingMap,),
    "first token": (Token,),
    "writing": (Token,),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Answers of this engine end by their length only."""
    path: Path = tmp_path_factory.mktemp("models") / "stopped-toy"
    write_toy_model(path, max_position_embeddings=MODEL_TOKENS)
    made = endless(path)
    yield made
    made.unload()


def is_in(phase: Phase, event: Event, tokens: int) -> bool:
    if not isinstance(event, PHASES[phase]):
        return False
    if phase in ("scoring", "reading"):
        return isinstance(event, PrefillProgress) and event.phase == phase
    return phase != "writing" or tokens > 1


def stopped(engine: Engine, asked: Generate, phase: Phase, after: int, by: str) -> Finished | None:
    """Stops `asked` at event `after` of `phase` by the cancel flag, or by leaving its events.

    Returns its end; None if it was left or too long for the context.
    """
    seen = tokens = 0
    due = False
    last: Event | None = None
    try:
        with closing(engine.generate(asked, lambda: due)) as events:  # type: ignore[type-var]
            for event in events:
                last = event
                tokens += isinstance(event, Token)
                seen += is_in(phase, event, tokens)
                due = due or seen > after
                if due and by == "left":
                    return None
    except PromptTooLongError:
        return None
    assert isinstance(last, Finished)
    return last


def of_length(engine: Engine, wanted: int, chosen: Settings) -> Message:
    """A question about a document with which the prompt has `wanted` tokens; the toy's are characters."""
    text = DOCUMENT * 9
    bare, _ = engine.count_prompt(
        Generate("r", (Message("user", FIRST, (Attachment("a.txt", "x"),)),), chosen)
    )
    return Message("user", FIRST, (Attachment("a.txt", text[: max(1, wanted - bare + 1)]),))


@pytest.mark.parametrize("part", thinned(range(3), keep=[0]))  # of the draw
@examples(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    phase=st.sampled_from(list(PHASES)),
    after=st.integers(0, 4),
    by=st.sampled_from(["flag", "left"]),
    context_tokens=st.sampled_from([320, MODEL_TOKENS]),
    over_tokens=st.sampled_from([-150, -2, -1, 0, 1, 150, 600, 3000]),
    mode=st.sampled_from(["on", "auto", "off"]),
    drafter=st.sampled_from(["off", "ngram-simple"]),
    others=st.booleans(),
)
@example("scoring", 0, "flag", MODEL_TOKENS, 600, "auto", "off", False)
@example("reading", 0, "flag", MODEL_TOKENS, 0, "auto", "off", True)
def test_a_request_can_be_stopped_at_any_moment_and_the_chat_goes_on(
    engine: Engine,
    part: int,
    phase: Phase,
    after: int,
    by: str,
    context_tokens: int,
    over_tokens: int,
    mode: str,
    drafter: str,
    others: bool,
) -> None:
    engine.forget()
    chosen = settings(
        **{
            "prefill.mode": mode,
            "prefill.keep_pct": 20,
            "prefill.context_tokens": context_tokens,
            "prefill.threshold_tokens": 64,
            "prefill.patience_s": 0,
            "prefill.chunk_tokens": 64,
            "drafting.drafter": drafter,
            "sampling.max_tokens": MOST_TOKENS,
        }
    )
    question = of_length(engine, context_tokens + over_tokens, chosen)
    finished = stopped(engine, Generate("r", (question,), chosen), phase, after, by)
    if finished is not None:
        stats, used = finished.stats, finished.stats.context_used_tokens
        assert min(stats.read_tokens, stats.reused_tokens, stats.kept_tokens, stats.skipped_tokens) >= 0
        assert 0 <= used <= context_tokens
        assert finished.reason in ("cancelled", "length")
        limits = [each.used for each in finished.effective.changes if each.setting == "sampling.max_tokens"]
        assert all(1 <= int(limit) < MOST_TOKENS for limit in limits)
    if others:  # another chat
        assert answered(engine, Generate("o", (Message("user", SECOND),), chosen))
    # The same question once more, or a short one in its place, as after an edit.
    for message in (question, Message("user", SECOND)):
        again = answered(engine, Generate("r2", (message,), chosen))
        may_refuse = message is question and over_tokens >= 0
        assert again or (may_refuse and (mode == "off" or context_tokens < MODEL_TOKENS))
    if mode == "off":  # what was left in the cache changes nothing
        engine.forget()
        assert answered(engine, Generate("r3", (Message("user", SECOND),), chosen)) == again


def answered(engine: Engine, asked: Generate) -> list[int]:
    """The ids of the answer; empty if the prompt is too long."""
    try:
        events = list(engine.generate(asked))
    except PromptTooLongError:
        return []
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.stats.context_used_tokens <= finished.stats.context_tokens
    return [event.id for event in events if isinstance(event, Token)]

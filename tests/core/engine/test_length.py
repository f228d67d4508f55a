"""The length of an answer: shortened only where the context is full, counted by the columns of the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from core.engine.engine import Engine
from core.errors import PromptTooLongError
from core.events import Attachment, Finished, Generate, Message, Token
from tests.core.engine.test_reading_on import DOCUMENT, FIRST, SECOND, THIRD
from tests.core.engine.test_sparse_session import endless, settings
from tests.core.toy import write_toy_model
from tests.thinned import thinned

MODEL_TOKENS = 1024


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Answers of this engine end by their length only."""
    path: Path = tmp_path_factory.mktemp("models") / "length-toy"
    write_toy_model(path, max_position_embeddings=MODEL_TOKENS)
    made = endless(path)
    yield made
    made.unload()


@pytest.mark.parametrize("part", thinned(range(3), keep=[0]))  # of the draw
@examples(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
# More is read than was planned, because nothing of it can be skipped.
@example(mode="auto", keep_pct=5, context_tokens=417, over_tokens=0, max_tokens=42, read_on="quote")
@given(
    mode=st.sampled_from(["on", "auto", "off"]),
    keep_pct=st.sampled_from([5, 25, 60]),
    context_tokens=st.integers(300, MODEL_TOKENS),
    over_tokens=st.integers(-200, 200),
    max_tokens=st.integers(1, 200),
    read_on=st.sampled_from(["quote", "off"]),
)
def test_an_answer_fills_the_context_before_it_is_shortened(
    engine: Engine,
    part: int,
    mode: str,
    keep_pct: int,
    context_tokens: int,
    over_tokens: int,
    max_tokens: int,
    read_on: str,
) -> None:
    """Three turns about a document of about the context's length, `over_tokens` more or less."""
    engine.forget()
    document = (DOCUMENT * 3)[: max(1, context_tokens + over_tokens)]
    chosen = settings(
        **{
            "prefill.mode": mode,
            "prefill.keep_pct": keep_pct,
            "prefill.context_tokens": context_tokens,
            "prefill.threshold_tokens": 64,
            "prefill.patience_s": 0,
            "prefill.read_on": read_on,
            "sampling.max_tokens": max_tokens,
        }
    )
    chat: tuple[Message, ...] = ()
    for question in (FIRST, SECOND, THIRD):
        attached = () if chat else (Attachment("valley.txt", document),)
        chat = (*chat, Message("user", question, attached))
        try:
            events = list(engine.generate(Generate("r", chat, chosen)))
        except PromptTooLongError:
            return
        finished, answer = events[-1], [event.id for event in events if isinstance(event, Token)]
        assert isinstance(finished, Finished)
        columns = engine.sequence.columns.count
        # The answer's last token may not have been read.
        assert finished.stats.context_used_tokens - columns in (0, 1)
        assert finished.stats.context_used_tokens <= context_tokens
        full = finished.stats.context_used_tokens == context_tokens
        assert len(answer) == max_tokens or full
        shortened = [c for c in finished.effective.changes if c.setting == "sampling.max_tokens"]
        assert [c.used for c in shortened] == [str(len(answer))] * (len(answer) < max_tokens)
        chat = (*chat, Message("assistant", engine.loaded.tokenizer.decode(answer)))

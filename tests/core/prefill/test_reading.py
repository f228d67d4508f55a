"""Reading of a prompt for an answer: what its cache holds, what is told of it, and what a stop leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.engine.engine import Engine
from core.errors import DraftModelError, NotEnoughMemoryError
from core.events import (
    Attachment,
    Event,
    Finished,
    Generate,
    Message,
    PrefillProgress,
    ReadingMap,
    Token,
)
from core.settings import Settings, assign_all
from tests.core.toy import write_toy_model

CONTEXT_TOKENS = 1024
PLENTY = 1 << 40
DOCUMENT = "\n".join(f"The {name} of valley {at} sleeps." for at, name in enumerate("abcdefghij" * 3))
FIRST = "Where sleeps the b of valley 1?"


@pytest.fixture(scope="module")
def left_bytes() -> list[int]:
    """The memory that is left: its last entry."""
    return [PLENTY]


@pytest.fixture(scope="module")
def draft_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "draft"
    write_toy_model(path, seed=1, max_position_embeddings=CONTEXT_TOKENS)
    return path


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, left_bytes: list[int]) -> Iterator[Engine]:
    path: Path = tmp_path_factory.mktemp("models") / "reading"
    write_toy_model(path, max_position_embeddings=CONTEXT_TOKENS)
    made = Engine(left_bytes=lambda: left_bytes[-1])
    made.load(str(path))
    made.loaded.eos = frozenset()
    yield made
    made.unload()


def chosen(**values: object) -> Settings:
    given: dict[str, object] = {
        "prefill.mode": "on",
        "prefill.scorer": "lexical",
        "prefill.passages": "fixed",  # the toy's tokens are characters
        "prefill.keep_pct": 25,
        "prefill.chunk_tokens": 64,
        "drafting.drafter": "off",
        "sampling.max_tokens": 4,
        **values,
    }
    return assign_all(Settings(), given.items())


def asked(words: str, *before: Message, document: str = DOCUMENT, **values: object) -> Generate:
    attached = () if before else (Attachment("valley.txt", document),)
    return Generate("r", (*before, Message("user", words, attached)), chosen(**values))


def told(engine: Engine, request: Generate) -> tuple[list[int], Finished, list[Any]]:
    """The answer's ids, its end, and what was told of the reading."""
    events: list[Event] = list(engine.generate(request))
    finished = events[-1]
    assert isinstance(finished, Finished)
    reading = [each for each in events if isinstance(each, PrefillProgress | ReadingMap)]
    return [each.id for each in events if isinstance(each, Token)], finished, reading


def held(engine: Engine) -> set[int]:
    columns = engine.sequence.columns
    return set(columns.places(0, columns.count).tolist())


@pytest.mark.parametrize("scorer", ["lexical", "draft-model"])
def test_the_cache_holds_what_the_map_says(engine: Engine, draft_folder: Path, scorer: str) -> None:
    engine.forget()
    values = {"prefill.scorer": scorer, "draft_model.model": str(draft_folder)}
    _, finished, reading = told(engine, asked(FIRST, **values))
    (found,) = [each for each in reading if isinstance(each, ReadingMap)]
    stats = finished.stats
    kept = np.concatenate([np.arange(each.start, each.end) for each in found.passages if each.kept])
    assert {*kept.tolist()} <= held(engine)
    assert found.passages[0].start == 0
    assert all(one.end == other.start for one, other in zip(found.passages, found.passages[1:]))
    assert stats.read_tokens + stats.reused_tokens + stats.skipped_tokens == stats.prompt_tokens
    assert 0 < stats.skipped_tokens < stats.prompt_tokens
    assert stats.kept_tokens < 0.5 * stats.prompt_tokens
    assert finished.effective.scorer == scorer
    assert finished.effective.changes == ()


def test_progress_is_told_to_its_end_and_never_goes_back(engine: Engine, draft_folder: Path) -> None:
    """Also of a draft model, which reads all of the prompt and is told of by the same figures."""
    totals = []
    for drafter in ("off", "draft-model"):
        engine.forget()
        values = {"drafting.drafter": drafter, "draft_model.model": str(draft_folder), "prefill.mode": "off"}
        _, finished, reading = told(engine, asked(FIRST, **values))
        steps = [each for each in reading if each.phase == "reading"]
        done = [each.done_tokens for each in steps]
        assert done == sorted(done)
        assert done[-1] == steps[-1].total_tokens
        assert len({each.total_tokens for each in steps}) == 1
        totals.append(steps[-1].total_tokens)
    assert totals == [finished.stats.prompt_tokens - 1, 2 * (finished.stats.prompt_tokens - 1)]


@pytest.mark.parametrize("after", [1, 2])
def test_a_reading_that_is_left_leaves_what_was_there(engine: Engine, after: int) -> None:
    engine.forget()
    first = Message("user", "Hello, is this about valleys?")
    ids, _, _ = told(engine, Generate("r", (first,), chosen()))
    said = Message("assistant", engine.loaded.tokenizer.decode(ids))
    before = list(engine.sequence.tokens)
    question = Message("user", FIRST, (Attachment("valley.txt", DOCUMENT),))
    request = Generate("r", (first, said, question), chosen())
    events = engine.generate(request)
    mapped = seen = 0
    for event in events:
        mapped += isinstance(event, ReadingMap)
        seen += bool(mapped) and isinstance(event, PrefillProgress)
        assert not isinstance(event, Token)
        if seen == after:
            break
    events.close()  # type: ignore[attr-defined]
    assert not engine.sequence.skipped
    assert engine.sequence.tokens == before[: len(engine.sequence.tokens)]
    got, finished, _ = told(engine, request)
    assert finished.stats.skipped_tokens > 0
    engine.forget()
    told(engine, Generate("r", (first,), chosen()))
    assert told(engine, request)[0] == got


def test_what_the_context_cannot_hold_lowers_the_share_once_and_names_the_wish(engine: Engine) -> None:
    engine.forget()
    long = DOCUMENT * 2
    for share in (60, 25):
        engine.forget()
        request = asked(FIRST, document=long, **{"prefill.keep_pct": share, "sampling.max_tokens": 60})
        _, finished, _ = told(engine, request)
        assert finished.stats.prompt_tokens > CONTEXT_TOKENS
        assert finished.stats.context_used_tokens <= CONTEXT_TOKENS
        assert "more than the context" in finished.effective.reading_reason
        lowered = [each for each in finished.effective.changes if each.setting == "prefill.keep_pct"]
        assert [each.asked for each in lowered] == ["60"] * (share == 60)
        assert all(0 < float(each.used) < 60 for each in lowered)


def test_a_scorer_without_its_draft_model_is_refused(engine: Engine) -> None:
    engine.forget()
    with pytest.raises(DraftModelError):
        told(engine, asked(FIRST, **{"prefill.scorer": "draft-model"}))


def test_what_does_not_fit_the_memory_is_refused(engine: Engine, left_bytes: list[int]) -> None:
    engine.forget()
    left_bytes.append(1)
    with pytest.raises(NotEnoughMemoryError):
        told(engine, asked(FIRST))
    left_bytes.pop()
    assert told(engine, asked(FIRST))[0]

"""An answer that repeats itself ends at the same token with and without drafts, and only on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.events import Generate
from tests.core.engine.support import settings, told
from tests.core.engine.test_shaped import ids, prompt_of

LLAMA = "llama"
# Rewards repetition, so the answer is soon one token again and again.
REWARDED = {"sampling.frequency_penalty": -0.2, "sampling.presence_penalty": -1.0, "sampling.max_tokens": 300}


@pytest.mark.parametrize("architecture", [LLAMA])
@pytest.mark.parametrize("drafter", ["ngram-simple", "auto"])
def test_it_ends_at_the_same_token_whatever_was_drafted(
    engine: Engine, architecture: str, drafter: str, toy_folder: Path
) -> None:
    also = Generate("", (), stop_repeating=True)
    plain, end = told(engine, prompt_of(LLAMA), settings("off", toy_folder, **REWARDED), also=also)
    assert end.reason == "repetition"
    assert end.repeats_from is not None
    assert len(plain) < 300
    engine.forget(tables=True)
    drafted, ended = told(engine, prompt_of(LLAMA), settings(drafter, toy_folder, **REWARDED), also=also)
    assert ended.stats.accepted
    assert ids(drafted) == ids(plain)
    assert ended.repeats_from == end.repeats_from
    engine.forget(tables=True)
    whole, unasked = told(engine, prompt_of(LLAMA), settings(drafter, toy_folder, **REWARDED))
    assert unasked.reason == "length"
    assert ids(whole)[: len(plain)] == ids(plain)


@pytest.mark.parametrize("architecture", [LLAMA])
@pytest.mark.parametrize("size", [1, 2, 4, 12])
def test_a_run_that_may_not_repeat_does_not_whatever_was_drafted(
    engine: Engine, architecture: str, size: int, toy_folder: Path
) -> None:
    values = {**REWARDED, "sampling.no_repeat_ngram_size": size, "sampling.max_tokens": 120}
    plain, _ = told(engine, prompt_of(LLAMA), settings("off", toy_folder, **values))
    written = ids(plain)
    runs = [tuple(written[at : at + size]) for at in range(len(written) - size + 1)]
    assert len(set(runs)) == len(runs) > 20
    free, _ = told(engine, prompt_of(LLAMA), settings("off", toy_folder, **REWARDED))
    assert ids(free)[:120] != written
    for drafter in ("ngram-simple", "auto", "frequency"):
        engine.forget(tables=True)
        drafted, ended = told(engine, prompt_of(LLAMA), settings(drafter, toy_folder, **values))
        assert ids(drafted) == written
        assert ended.stats.tested

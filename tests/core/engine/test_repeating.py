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
@pytest.mark.parametrize("drafter", ["auto"])
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

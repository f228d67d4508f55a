"""Logits of tiny models that see, against those of mlx-vlm (tests/tuning/vision_oracle.py records them).

Everything is the product's: the loaded folder, the rendered prompt, the child process that decodes, the
tower, positions and masks, in one pass and in chunks that divide images, and a drafted answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from core.engine.engine import Engine
from core.events import FIRST_IMAGE_ROW, Generate, Token
from core.kv.cached_sequence import CachedSequence
from core.settings import Settings, assign_all
from core.vision.sight import Sight
from tests.core.seeing import CASES, RECORDED, messages_of, write_case, write_seeing_model
from tests.thinned import thinned
from tests.tuning.vision_oracle import EVERY_COLUMNS, EVERY_ROWS, GREEDY

TOLERANCE = 1e-4


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def engine_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Engine]:
    """The engine of a family and stored form."""

    @cache
    def made(family: str, stored: str) -> Engine:
        folder = tmp_path_factory.mktemp("model")
        write_seeing_model(folder, family, stored=stored)
        engine = Engine()
        engine.load(str(folder))
        return engine

    return made


def _logits(engine: Engine, request: Generate, chunk: int) -> tuple[list[int], mx.array]:
    """The prompt's ids, and its logits read in chunks."""
    ids = engine._prompt(request)[0].ids
    sight = engine._sight(request.messages, ids)
    assert isinstance(sight, Sight)
    sequence = CachedSequence(engine.loaded.new_cache)
    found, at = [], 0
    while at < len(ids):
        end = sight.end(ids, at, min(at + chunk, len(ids)))
        with sight.reading(sequence, ids[at:end]) as (block, given):
            logits = engine.loaded.model(block, cache=sequence.cache, **given)
        mx.eval(logits)
        sequence.append(ids[at:end])
        found.append(logits[0])
        at = end
    return ids, mx.concatenate(found)


@pytest.mark.parametrize("name", thinned(CASES, keep=[name for name in CASES if "full, between" in name]))
def test_logits_are_those_of_the_oracle(
    name: str, engine_of: Callable[[str, str], Engine], tmp_path: Path
) -> None:
    family, stored, talk = CASES[name]
    engine, expected = engine_of(family, stored), _recorded()[name]
    write_case(tmp_path, name)
    request = Generate("", messages_of(tmp_path, talk))
    for chunk in (10_000, 7) if stored == "full" else (10_000,):
        ids, logits = _logits(engine, request, chunk)
        assert len(ids) == len(expected["ids"])
        rows = [have >= FIRST_IMAGE_ROW for have in ids]
        image = {token for token, row in zip(expected["ids"], rows) if row}
        assert len(image) == 1
        assert [have for have, row in zip(ids, rows) if not row] == [
            token for token, row in zip(expected["ids"], rows) if not row
        ]
        assert sum(rows) == expected["ids"].count(image.pop())
        have = np.array(logits[::EVERY_ROWS, ::EVERY_COLUMNS])
        assert np.abs(have - np.array(expected["logits"])).max() < TOLERANCE
    settings = assign_all(
        Settings(),
        [("drafting.drafter", "ngram-simple"), ("gate.mode", "always"), ("sampling.max_tokens", GREEDY)],
    )
    settings = assign_all(settings, [("sampling.temperature", 0.0)])
    engine.loaded.eos = frozenset()
    events = engine.generate(Generate("", request.messages, settings))
    assert [event.id for event in events if isinstance(event, Token)] == expected["tokens"]

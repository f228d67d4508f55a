"""How long drafters take, without a model: microseconds a step at a long history.

A step is one `draft`, and `observe` of what was emitted. The history is the prompts' own ids,
laid end to end and repeated until it is long enough, so look-ups find something most of the time.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterable, Sequence

from msgspec import Struct

from core.drafting.ngram_table import NgramTables
from core.drafting.registry import DrafterSpec, Resources
from core.drafting.table_evidence import Continuations
from core.settings import Settings

HISTORY_TOKENS = 32_000
_STEPS = 2_000


class DraftTime(Struct, frozen=True):
    """Of the steps that drafted something. `nodes` is their mean draft length."""

    drafter: str
    history_tokens: int
    steps: int
    nodes: float
    median_us: float
    p99_us: float


def draft_times(
    specs: Iterable[DrafterSpec], prompts: Sequence[Sequence[int]], learned: Continuations | None = None
) -> list[DraftTime]:
    """One row a drafter, trees where it has them; those that need a model are left out.

    `learned` is the family's table, for the drafter that asks one.
    """
    rng = random.Random(0)
    history: list[int] = []
    while len(history) < HISTORY_TOKENS + _STEPS * 2:
        history += rng.choice(prompts)
    return [_measure(spec, history, learned) for spec in specs if spec.drafts and not spec.needs_proposer]


def _measure(spec: DrafterSpec, history: Sequence[int], learned: Continuations | None) -> DraftTime:
    resources = Resources(1 << 17, "bench", NgramTables(), spec.trees, continuations=learned)
    drafter = spec.build(Settings(), resources)
    drafter.begin(history[:HISTORY_TOKENS])
    times, nodes, position = [], [], HISTORY_TOKENS
    for _ in range(_STEPS):
        started = time.perf_counter()
        draft = drafter.draft(255)
        emitted = history[position : position + 2]
        drafter.observe(emitted)
        elapsed = time.perf_counter() - started
        position += len(emitted)
        if len(draft):
            times.append(elapsed * 1e6)
            nodes.append(len(draft))
    times.sort()
    return DraftTime(
        spec.name,
        HISTORY_TOKENS,
        len(times),
        statistics.fmean(nodes) if nodes else 0.0,
        statistics.median(times) if times else 0.0,
        times[int(len(times) * 0.99)] if times else 0.0,
    )

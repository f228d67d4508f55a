"""What a run of `bench quality` came to, as its `results.json` holds it."""

from __future__ import annotations

from msgspec import Struct

from core.bench.harness import Environment
from core.bench.quality.trial import Trial


class QualityResults(Struct, frozen=True):
    """All of one run of the bench. `took_s` counts only what this run did itself."""

    bench: str
    environment: Environment
    model: str
    keep_pct: float
    context: int
    document_context: int
    continuation: int
    draft_model: str
    took_s: float
    trials: tuple[Trial, ...]

"""Names in the command lines of `bench retrieval` and `bench likelihood`, which load the benches later."""

from __future__ import annotations

from core.settings.prefill import SCORERS

# Every scorer has to find more than these.
BASELINES = ("random", "head-and-tail")
# `bench quality` measures the scorer by a draft model, which it has.
MEASURED = (*BASELINES, *(name for name in SCORERS if name != "draft-model"))
# Positions of kept passages, and later turns.
LIKELIHOOD_PARTS = ("positions", "turns")

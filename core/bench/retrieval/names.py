"""Names in the command line of `bench retrieval`, which loads the bench later."""

from __future__ import annotations

from core.settings.prefill import SCORERS

# Every scorer has to find more than these.
BASELINES = ("random", "head-and-tail")
# `bench quality` measures the scorer by a draft model, which it has.
MEASURED = (*BASELINES, *(name for name in SCORERS if name != "draft-model"))

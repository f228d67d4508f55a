"""What `bench retrieval` measures, by name; without what measures it, so that a command line may know."""

from __future__ import annotations

from core.settings.prefill import SCORERS

# What a scorer has to beat.
BASELINES = ("random", "head-and-tail")
# A draft model's scores are `bench quality`'s: they need one.
MEASURED = (*BASELINES, *(name for name in SCORERS if name != "draft-model"))

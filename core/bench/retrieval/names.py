"""What `bench retrieval` and `bench likelihood` measure, by name; a command line need not load the rest."""

from __future__ import annotations

from core.settings.prefill import SCORERS

# What a scorer has to beat.
BASELINES = ("random", "head-and-tail")
# A draft model's scores are `bench quality`'s: they need one.
MEASURED = (*BASELINES, *(name for name in SCORERS if name != "draft-model"))
# Where kept passages stand, and what a second question is worth.
LIKELIHOOD_PARTS = ("positions", "turns")

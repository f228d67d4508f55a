"""A whole sweep, as the Lab shows it."""

from __future__ import annotations

from msgspec.structs import replace

from app.session.lab import Given, Lab, LabRun, Said, SweepPlan
from core.events import PositionStat
from core.events.sweep import (
    SweepCell,
    SweepEnded,
    SweepLikeness,
    SweepPair,
    SweepReading,
    SweepStarted,
    SweepTurn,
)
from tests.app.session.test_lab import run

KINDS = ("passage", "code", "json_rag")
DRAFTERS = ("auto", "ngram-simple", "ngram-mod")
KEEPS = (10.0, 20.0, 30.0, 50.0, 100.0)
_PLAN = SweepPlan("starter", DRAFTERS, ("prompts.jsonl",), KINDS, 3, 128)


def swept() -> Lab:
    """Three kinds of prompts by three drafters; one answer differs."""
    given: list[Given] = [LabRun(_PLAN, 1.0), Said(SweepStarted("SmolLM2 135M", "here", 27, 5, 0.5))]
    for row, kind in enumerate(KINDS):
        for column, drafter in enumerate(DRAFTERS):
            ratio = 1.0 + 0.4 * row + 0.2 * column
            pairs = tuple(SweepPair(ratio + 0.1 * n, 20.0 * ratio, 20.0, 1.0, 1.0) for n in range(3))
            if (row, column) == (0, 0):
                told = {"difference": 3, "margin": 0.1, "plain_text": "a b", "drafted_text": "a c"}
                pairs = (replace(pairs[0], **told), *pairs[1:])
            stats = tuple(PositionStat(100 - 10 * n, 80 - 12 * n) for n in range(6))
            given.append(Said(SweepCell(kind, 0, drafter, 800, 128, 0.6, ratio * 2, stats, pairs)))
    for drafter in DRAFTERS:
        given += [Said(SweepTurn("chat", drafter, n, 200 * n, 20.0 + n, 20.0, True)) for n in range(1, 6)]
    for keep in KEEPS:
        given += [
            Said(SweepReading("lexical", keep, 4000, int(40 * keep), keep / 10, 10.0)),
            Said(SweepLikeness("lexical", keep, 4, 128, 0.8 + keep / 500)),
        ]
    lab, _ = run(*given, Said(SweepEnded("out", 312.0)))
    return lab

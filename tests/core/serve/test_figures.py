"""Figures of an answer as responses state them."""

from __future__ import annotations

from core.events import Effective, Finished, Stats
from core.serve.answering import effective
from core.settings import Settings


def test_figures_of_an_answer_are_in_the_stated_units() -> None:
    stats = Stats(
        ttft_s=1.2345678, mean_per_step=2.34567, steps=7, forced=3, skipped_tokens=11, image_tokens=5
    )
    ran = Effective("toy", "float32", "auto", Settings(), reading="sparse", reading_reason="it is long")
    told = effective(Finished("id", "stop", stats, ran, stopped_by="###"), unlimited=False)
    assert told == {
        "drafter": "auto",
        "reading": "sparse",
        "reading_reason": "it is long",
        "skipped_tokens": 11,
        "image_tokens": 5,
        "mean_per_step": 2.346,
        "steps": 7,
        "forced": 3,
        "ttft_ms": 1234.568,
        "stopped_by": "###",
        "cancelled": False,
        "changes": [],
    }

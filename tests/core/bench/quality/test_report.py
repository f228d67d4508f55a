"""What the report says follows from the trials: ratios, regressions only where dense passes, duels."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from core.bench.harness import describe
from core.bench.quality.results import QualityResults, Trial, duel, nearness, passes, write_report


def document(reader: str, seed: int, nll: float, kind: str = "code") -> Trial:
    return Trial(
        "document", kind, seed, reader, 1000, 1000 if reader == "dense" else 200, nll, 0.1 * seed, 0.5
    )


def asked(reader: str, seed: int, nll: float, passed: bool, name: str = "needle-10") -> Trial:
    return Trial("task", name, seed, reader, 1000, 200, nll, 0.0, 1.0, passed, int(passed), "")


def windows() -> list[Trial]:
    """Lexical is 1.1, 1.2, … times as perplexed as dense, random always twice."""
    trials = []
    for seed in range(1, 8):
        trials += [
            document("dense", seed, 1.0),
            document("lexical", seed, 1.0 + math.log(1.0 + seed / 10)),
            document("random", seed, 1.0 + math.log(2.0)),
        ]
    return trials


def test_perplexity_ratio_is_of_pairs() -> None:
    found = nearness(windows(), "document", "lexical")
    assert found.windows == 7
    assert found.ratio == pytest.approx(1.4)
    assert (found.ratio_low, found.ratio_high) == (pytest.approx(1.25), pytest.approx(1.55))
    assert found.read_share == 0.2
    assert found.kl_nats == pytest.approx(0.4)
    assert nearness(windows(), "document", "lexical", "story").windows == 0


def test_regressions_count_where_dense_passes() -> None:
    outcomes = [(True, True), (True, False), (True, False), (False, True), (False, False)]
    trials = []
    for seed, (dense, sparse) in enumerate(outcomes, 1):
        trials += [asked("dense", seed, 0.5, dense), asked("lexical", seed, 0.7, sparse)]
    found = passes(trials, ["needle-10"], "lexical")
    assert (found.seeds, found.dense, found.passed) == (5, 3, 2)
    assert (found.regressions, found.improvements) == (2, 1)
    assert found.p == 1.0
    assert (found.nll_dense, found.nll) == (0.5, 0.7)
    assert (found.likelier, found.less_likely) == (0, 5)
    assert found.p_likelier == pytest.approx(2 / 2**5)


def test_a_trial_without_its_dense_one_is_no_pair() -> None:
    assert passes([asked("lexical", 1, 0.5, True)], ["needle-10"], "lexical").seeds == 0


def test_a_duel_is_clear_only_with_enough_pairs() -> None:
    found = duel(windows(), "document", "lexical", "random", "likelihood")
    assert (found.wins, found.losses) == (7, 0)
    assert found.clear
    few = [trial for trial in windows() if trial.seed < 5]
    assert not duel(few, "document", "lexical", "random", "likelihood").clear
    assert not duel(windows(), "document", "random", "lexical", "likelihood").clear


def test_the_nearer_to_dense_wins_by_kl_and_an_unknown_kl_is_no_pair() -> None:
    trials = [
        replace(document(reader, seed, 1.0), kl_nats=kl)
        for seed in range(1, 8)
        for reader, kl in (("lexical", 0.1 * seed), ("random", 0.15 if seed > 1 else None))
    ]
    found = duel(trials, "document", "lexical", "random", "KL")
    assert (found.wins, found.losses, found.theirs) == (0, 6, 0.15)
    assert "| documents | KL | random |" not in report(trials)
    assert "| documents | KL | lexical | random | 0.450 | 0.150 | 0 | 6 | 0.031 | **no** |" in report(trials)


def test_tasks_that_need_everything_are_no_duel() -> None:
    trials = [asked(r, 1, n, True, "common-words") for r, n in (("lexical", 0.1), ("random", 0.9))]
    assert duel(trials, "task", "lexical", "random", "likelihood").wins == 0


def report(trials: list[Trial]) -> str:
    environment = describe("a blas")
    return write_report(
        QualityResults("quality", environment, "a model", 20.0, 4096, 7000, 256, "", 60.0, tuple(trials))
    )


def test_report_says_what_was_missed() -> None:
    text = report(windows())
    assert "**missed**" in text
    assert "| lexical | 7 | 20% | **1.400** (1.25–1.55) |" in text
    assert "| documents | likelihood | lexical | random |" in text
    assert "Tasks: passed" not in text


def test_passages_are_judged_by_themselves() -> None:
    """Worse than dense by less than the documents are, and won or lost on their own."""
    passages = [
        replace(document(reader, seed, nll), part="passage")
        for seed in range(1, 8)
        for reader, nll in (("dense", 0.5), ("lexical", 0.5 + math.log(1.05)), ("random", 2.0))
    ]
    trials = [*windows(), *passages]
    assert nearness(trials, "passage", "lexical").ratio == pytest.approx(1.05)
    assert nearness(trials, "document", "lexical").ratio == pytest.approx(1.4)
    text = report(trials)
    assert text.index("## Documents: perplexity") < text.index("## Passages requested")
    assert "| lexical | 7 | 20% | **1.050** (1.05–1.05) |" in text
    assert "| passages | likelihood | lexical | random | 0.549 | 2.000 | 7 | 0 | 0.016 | yes |" in text
    assert "Passages requested" not in report(windows())
    assert "\n\n\n" not in text


def test_hindsight_is_a_bound_not_a_scorer() -> None:
    assert "following tokens" not in report(windows())
    told = [document("hindsight-8", seed, 1.0 + math.log(1.05)) for seed in range(1, 8)]
    text = report(windows() + told)
    row = next(line for line in text.splitlines() if line.startswith("| hindsight-8 "))
    assert "**1.050**" in row
    assert "| – |" in row
    assert "scored with that many of the following tokens" in text
    assert "| documents | hindsight-8 |" not in text


def test_report_names_what_dense_fails() -> None:
    trials = windows()
    for seed in range(1, 5):
        trials += [
            asked("dense", seed, 0.5, True),
            asked("lexical", seed, 0.6, seed != 1),
            asked("dense", seed, 3.0, False, "common-words"),
            asked("lexical", seed, 4.0, False, "common-words"),
        ]
    text = report(trials)
    assert "| needle-10 | 4 | 4, 0.50 | 3 (1−, 0+), 0.60 |" in text
    assert "fewer than half densely of: common-words." in text
    assert "| common-words * |" in text
    assert "| **need no whole text** | 4 | 4, 0.50 | 3 (1−, 0+), 0.60 |" in text
    assert "| lexical | no | 4 | 1 | 0 | 1 | 0 | 4 | 0.12 |" in text
    assert "| lexical | yes | 4 | 0 | 0 | 1 | 0 | 4 | 0.12 |" in text


def test_report_says_on_how_many_prompts_a_reader_was_tried() -> None:
    trials = [asked("dense", seed, 0.5, True) for seed in range(1, 5)]
    trials += [asked("lexical", seed, 0.6, True) for seed in (1, 2)] + [asked("random", 4, 0.7, False)]
    text = report(trials)
    assert "| needle-10 | 4 | 4, 0.50 | 2 of 2 (0−, 0+), 0.60 | 0 of 1 (1−, 0+), 0.70 |" in text
    assert "| tasks | lexical | random |" not in text  # never tried on the same prompt
    trials += [asked("dense", seed, 3.0, False, "needle-50") for seed in (1, 2)]
    text = report(trials)
    assert "| needle-50 | 2 | 0, 3.00 | – | – |" in text
    assert "| lexical | yes |" not in text

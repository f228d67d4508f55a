"""The means of tables learned beforehand, over prompts that can be compared."""

from __future__ import annotations

import pytest

from core.bench.environment import describe
from core.bench.pieces import PieceProgress
from core.bench.tables.table_learned import PLAIN, LearnedAnswer, LearnedRound, learned_rows
from core.bench.tables.table_report import TableResults, write_report


def test_a_prompt_with_nothing_to_compare_is_in_no_mean() -> None:
    def told(prompt: int, plain: float, other: float) -> LearnedRound:
        answers = (LearnedAnswer(PLAIN, (1,), plain, 1.0), LearnedAnswer("auto", (1,), other, 2.0))
        return LearnedRound("short" if prompt else "long", prompt, 0, answers)

    rounds = [told(0, 10.0, 15.0), told(1, 0.0, 12.0), told(2, 10.0, 0.0), told(3, 0.0, 0.0)]
    rows = {(row.configuration, row.kind): row for row in learned_rows(rounds)}
    assert (rows["auto", "all"].prompts, rows["auto", "all"].compared) == (4, 1)
    assert rows["auto", "all"].speed_up == pytest.approx(1.5)
    assert (rows["auto", "short"].compared, rows["auto", "short"].speed_up) == (0, 0.0)
    whole, learned = PieceProgress(4, 4), tuple(rows.values())
    report = write_report(TableResults("tables", describe("a BLAS"), "streams", whole, learned=learned))
    assert "| auto | all | 4 | 1.50, of 1 prompts |" in report
    assert "| auto | short | 3 | nothing to compare |" in report

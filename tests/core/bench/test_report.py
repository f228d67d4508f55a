"""Groups of records and their tables: medians, ratios, sums, and what is named below the tables."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.bench.report import report
from core.events import Change, PositionStat, Stats
from core.events.bench import Difference, Pair, Record, groups, speed_ratio


def pair(own: float, plain: float = 10.0, **fields: object) -> Pair:
    stats = Stats(
        prompt_tokens=1000,
        read_tokens=200,
        skipped_tokens=800,
        tokens=20,
        steps=10,
        tested=8,
        accepted=4,
        score_s=0.5,
        ttft_s=2.0,
        tokens_per_s=own,
        positions=(PositionStat(6, 3), PositionStat(2, 1)),
    )
    return replace(Pair(stats, 20, 10.0, plain, 2_000_000, 1_000_000), **fields)


def record(case: str, configuration: str, repeat: int, *pairs: Pair) -> Record:
    return Record(f"{case}:1", case, configuration, repeat, pairs, 1.0)


RECORDS = [
    record("code", "off", 1, pair(8.0)),
    record("code", "auto", 1, pair(30.0)),
    record("talk", "off", 1, pair(10.0), pair(10.0)),
    record("talk", "auto", 1, pair(10.0), pair(0.0)),
    record("code", "off", 2, pair(10.0)),
    record("code", "auto", 2, pair(20.0)),
]


def test_groups_are_cases_turns_and_all() -> None:
    found = {(each.case, each.configuration): each for each in groups(RECORDS)}
    assert list(found) == [
        (case, configuration)
        for case in ("code", "talk", "talk, turn 1", "talk, turn 2", "all")
        for configuration in ("off", "auto")
    ]
    code = found["code", "auto"]
    assert (code.ratio, code.ratios) == (2.5, [2.0, 3.0])
    assert code.off_ratios == [30.0 / 8.0, 2.0]
    assert (code.acceptance, code.mean_per_step, code.equal) == (0.5, 2.0, 2)
    assert code.positions == [PositionStat(12, 6), PositionStat(4, 2)]
    # An unmeasured speed is in no median.
    assert found["talk", "auto"].ratios == [1.0]
    assert found["talk, turn 2", "auto"].ratio == 0.0
    assert found["all", "auto"].ratios == [1.0, 2.0, 3.0]


def test_one_case_has_no_row_for_all() -> None:
    assert [each.case for each in groups(RECORDS[:2])] == ["code", "code"]


def test_the_tables() -> None:
    lines = report(RECORDS, heading="toy")
    text = "\n".join(lines)
    assert "| code | auto | 2 | **2.50** (2.00 to 3.00) | 2.88 | 25.0 | 10.0 | 50% | 2.00 |" in text
    assert "| talk, turn 2 | auto | 1 | nothing to compare | – | – | 10.0 |" in text
    # 1 ÷ (0.5 s of 10 s + 200 of 1,000 tokens) = 4.
    assert "| code | auto | 2.000 | 10.000 | 5.00 | 200 | 1,000 | 0.50 | 4.00 | 1 | 2 |" in text
    assert "- code, auto: 6/12, 2/4" in text
    assert "8 of 8 compared outputs are equal" in text


def test_what_is_named_below_the_tables() -> None:
    differs = Difference(4, "a", "b", 3, 0.5, 0.25, explained=True)
    longer = Difference(4, "a", "")
    change = Change("cacheback.mode", "dual", "dynamic", "there is no table")
    found = [
        record("code", "auto", 1, pair(1.0, difference=differs, changes=(change,), repeated=0.5)),
        record("code", "auto", 2, pair(1.0, difference=longer, changes=(change,))),
        record("code", "draft-model", 1, pair(1.0, two_models_per_s=5.0, compared=False)),
    ]
    text = "\n".join(report(found, heading="toy"))
    assert "0 of 2 compared outputs" in text
    assert "**0 of 2**" in text
    assert (
        "token 5 is “a” in plain decoding and “b” here; margin 0.5 at width 1, 0.25 at width 3; within"
        in text
    )
    assert "one answer is longer" in text
    assert text.count("cacheback.mode dual ran as dynamic, because there is no table") == 1
    assert "- code, draft-model: 5.0 tok/s, 0.50 times plain" in text
    assert "50% (loop)" in text
    assert "not compared" in text


def test_an_unmeasured_speed_has_no_ratio() -> None:
    assert speed_ratio(15.0, 10.0) == pytest.approx(1.5)
    assert speed_ratio(0.0, 10.0) == speed_ratio(15.0, 0.0) == speed_ratio(0.0, 0.0) == 0.0

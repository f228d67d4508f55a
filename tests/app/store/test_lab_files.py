"""The Lab's files: its own results, those of the other benches, prompts, and how long a sweep takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from app.session.lab import (
    SweepPlan,
    common_start,
    drafters,
    equal_of,
    keeps,
    kinds,
    parity,
    places,
    plain_speed,
    speeds,
    turns,
)
from app.store.lab_files import (
    about_s,
    answers_of,
    merged,
    past_sweeps,
    read_classes,
    read_results,
    readings_of,
)
from core.errors import RequestError
from core.events import PositionStat
from core.events.sweep import SweepCell, SweepLikeness, SweepPair, SweepReading, SweepResults, SweepTurn
from core.system.paths import resources_dir

DIFFERS = SweepPair(1.0, 10.0, 10.0, difference=3, plain_text="a b", drafted_text="a c")


def pair(ratio: float) -> SweepPair:
    return SweepPair(ratio, 10.0 * ratio, 10.0)


def cell(kind: str, drafter: str, *pairs: SweepPair, prompt: int = 0) -> SweepCell:
    positions = (PositionStat(10, 8), PositionStat(8, 2))
    return SweepCell(kind, prompt, drafter, 5, 6, 0.5, 2.0, positions, pairs)


RESULTS = SweepResults(
    "sweep",
    "Toy 1M",
    "here",
    ("auto", "frequency"),
    "fast",
    2,
    32,
    5.0,
    took_s=60.0,
    answers=6,
    seconds_an_answer=2.0,
    ended=True,
    cells=(
        cell("code", "auto", pair(2.0), pair(3.0)),
        cell("code", "auto", pair(4.0), DIFFERS, prompt=1),
        cell("tale", "frequency", pair(0.5)),
    ),
    turns=(
        SweepTurn("chat", "auto", 1, 5, 20.0, 10.0, True),
        SweepTurn("chat", "auto", 2, 9, 30.0, 11.0, True),
    ),
    readings=(
        SweepReading("lexical", 20.0, 100, 20, 1.0, 3.0),
        SweepReading("x", 100.0, 100, 100, 4.0, 3.0, "dense"),
    ),
    likenesses=(SweepLikeness("lexical", 20.0, 2, 128, 0.9),),
    reference="starter",
)


def written(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(content))
    return path


# ---- figures


def test_the_figures_of_the_charts() -> None:
    assert drafters(RESULTS) == ["auto", "frequency"]
    assert kinds(RESULTS) == ["code", "tale"]
    found = {(each.drafter, each.kind): each for each in speeds(RESULTS)}
    assert set(found) == {("auto", "code"), ("frequency", "tale")}
    code = found["auto", "code"]
    assert (code.ratio, code.least, code.most, code.pairs) == (2.5, 1.0, 4.0, 4)
    assert plain_speed(RESULTS) == 10.0
    assert equal_of(RESULTS) == (4, 5)
    marks = next(each.marks for each in parity(RESULTS) if each.kind == "code")
    assert [(mark.prompt, mark.number, mark.pair.equal) for mark in marks] == [
        (0, 1, True),
        (0, 2, True),
        (1, 1, True),
        (1, 2, False),
    ]
    auto = next(curve for curve in places(RESULTS) if curve.name == "auto")
    assert auto.points == ((1, 0.8), (2, 0.25))
    drafted, plain = turns(RESULTS)
    assert drafted.points == ((1, 20.0), (2, 30.0))
    assert plain.plain
    assert plain.points == ((1, 10.0), (2, 11.0))
    assert [(k.keep_pct, k.ttft_s, k.agreement, k.as_asked) for k in keeps(RESULTS)] == [
        (20.0, 1.0, 0.9, True),
        (100.0, 4.0, 1.0, True),
    ]


def test_nothing_is_made_up() -> None:
    empty = replace(RESULTS, cells=(), turns=(), readings=(), likenesses=())
    assert speeds(empty) == parity(empty) == places(empty) == turns(empty) == keeps(empty) == []
    assert (plain_speed(empty), equal_of(empty)) == (0.0, (0, 0))
    dense = replace(RESULTS, readings=(replace(RESULTS.readings[0], ran="dense"),), likenesses=())
    assert [(k.agreement, k.as_asked) for k in keeps(dense)] == [(None, False)]


def test_where_texts_part() -> None:
    assert common_start("abc", "abd") == 2
    assert common_start("ab", "abc") == 2
    assert common_start("", "a") == 0


# ---- files


def test_its_own_results_come_back(tmp_path: Path) -> None:
    first = written(tmp_path / "2026-01-02 10-00-00" / "results.json", RESULTS)
    second = written(tmp_path / "2026-01-03 10-00-00" / "results.json", RESULTS)
    assert past_sweeps(tmp_path) == [second, first]
    assert read_results(first) == RESULTS


def test_several_files_are_shown_together() -> None:
    other = replace(RESULTS, drafters=("cacheback",), cells=(cell("code", "cacheback", pair(1.0)),))
    found = merged([RESULTS, other])
    assert found.drafters == ("auto", "frequency", "cacheback")
    assert len(found.cells) == 4
    assert len(found.turns) == 4


def test_a_decode_file(tmp_path: Path) -> None:
    one = {
        "ratio": 2.0,
        "baseline_tokens_per_s": 10.0,
        "candidate_tokens_per_s": 20.0,
        "baseline_ttft_s": 0.1,
        "candidate_ttft_s": 0.2,
        "equal": False,
        "first_difference": 7,
    }
    rows = [("code", "off"), ("code", "auto"), ("chat, turn 2", "auto"), ("chat, all turns", "auto")]
    cells = [{"kind": kind, "configuration": name, "pairs": [one], "positions": []} for kind, name in rows]
    found = read_results(
        written(
            tmp_path / "r.json",
            {"bench": "decode", "model": "M", "environment": {"system": "Linux"}, "pairs": 1, "cells": cells},
        )
    )
    (code,) = found.cells
    assert (code.drafter, code.pairs[0].ratio, code.pairs[0].difference) == ("auto", 2.0, 7)
    (turn,) = found.turns
    assert (turn.kind, turn.turn, turn.tokens_per_s, turn.equal) == ("chat", 2, 20.0, False)
    assert found.machine.startswith("Linux")


def test_a_parity_file_has_no_speeds(tmp_path: Path) -> None:
    found_at = {
        "index": 4,
        "baseline_token": "a",
        "candidate_token": "b",
        "margin_width_1": 0.1,
        "margin_width_w": 0.1,
        "width": 8,
        "predicted": True,
    }
    one = {"kind": "code", "k": 7, "n_min": 2, "comparisons": 4, "equal": 3, "divergence": found_at}
    found = read_results(
        written(tmp_path / "r.json", {"bench": "parity", "model": "M", "runs": 2, "cells": [one]})
    )
    assert equal_of(found) == (3, 4)
    assert speeds(found) == []
    assert found.cells[0].drafter == "ngram-simple k=7 n_min=2"
    assert found.cells[0].pairs[-1].close_call


def test_prefill_and_quality_files(tmp_path: Path) -> None:
    reading = {
        "scorer": "lexical",
        "keep_pct": 20.0,
        "ran": "sparse",
        "pairs": [
            {"baseline_ttft_s": 9.0, "ttft_s": 2.0, "ratio": 4.5},
            {"baseline_ttft_s": 9.0, "ttft_s": 4.0},
        ],
    }
    prefill = read_results(
        written(tmp_path / "p.json", {"bench": "prefill", "model": "M", "cells": [reading]})
    )
    trials = [
        {"part": "document", "reader": "lexical", "top1_agreement": 0.8, "name": "x"},
        {"part": "document", "reader": "dense", "top1_agreement": 1.0, "name": "x"},
        {"part": "task", "reader": "lexical", "top1_agreement": 0.1, "name": "x"},
        {"part": "task", "reader": "lexical", "top1_agreement": None, "name": "y"},
    ]
    quality = read_results(
        written(tmp_path / "q.json", {"bench": "quality", "model": "M", "keep_pct": 20.0, "trials": trials})
    )
    (keep,) = keeps(merged([prefill, quality]))
    assert (keep.keep_pct, keep.ttft_s, keep.agreement) == (20.0, 3.0, 0.8)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"bench": "window"}', b'{"bench": "sweep"}', b"\xff"]
)
def test_other_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(content)
    with pytest.raises(RequestError, match=r"some\.json"):
        read_results(path)
    with pytest.raises(RequestError, match=r"missing\.json"):
        read_results(tmp_path / "missing.json")


def test_the_shipped_prompts() -> None:
    found = read_classes(resources_dir() / "bench" / "three-class.jsonl")
    assert [(each.kind, each.prompts, each.turns) for each in found] == [
        ("passage", 1, 0),
        ("code", 1, 0),
        ("json_rag", 1, 0),
    ]
    (editing,) = read_classes(resources_dir() / "bench" / "editing.jsonl")
    assert editing.turns == 4


def test_every_file_that_the_lab_offers_can_be_swept() -> None:
    files = sorted((resources_dir() / "bench").glob("*.jsonl"))
    assert [file.name for file in files if read_classes(file)] == ["editing.jsonl", "three-class.jsonl"]


@pytest.mark.parametrize("line", ["{}", '{"prompt": "a", "turns": ["b"]}'])
def test_a_line_is_a_prompt_or_a_conversation(line: str, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(line)
    with pytest.raises(RequestError, match=r"own\.jsonl, line 1: it needs either"):
        read_classes(path)


def test_broken_prompts_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"class": "code", "prompt": "x"}) + "\n{\n")
    with pytest.raises(RequestError, match=r"own\.jsonl, line 2"):
        read_classes(path)
    path.write_text("\n")
    with pytest.raises(RequestError, match="no prompts"):
        read_classes(path)


# ---- how much, and how long


def test_how_many_answers_and_how_long() -> None:
    classes = [
        *read_classes(resources_dir() / "bench" / "three-class.jsonl"),
        *read_classes(resources_dir() / "bench" / "editing.jsonl"),
    ]
    plan = SweepPlan("starter", ("auto", "frequency"), (), ("code", "editing"), 3, 32)
    assert answers_of(plan, classes) == 2 * 2 * (3 + 4)
    assert readings_of(plan) == 0
    assert about_s(plan, classes, []) is None
    assert about_s(plan, classes, [RESULTS]) == 28 * 2.0
    assert about_s(replace(plan, max_tokens=64), classes, [RESULTS]) is None
    assert about_s(replace(plan, model="other"), classes, [RESULTS]) is None
    keeping = replace(plan, keeps=(20.0, 100.0))
    assert readings_of(keeping) == 1 + 2 + 4
    assert about_s(keeping, classes, [RESULTS]) is None
    before = replace(RESULTS, seconds_a_reading=10.0)
    assert about_s(keeping, classes, [before]) == 28 * 2.0 + 70.0

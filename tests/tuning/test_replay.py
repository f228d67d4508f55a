"""Replay: exact acceptance from recorded answers, costs from named tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench.runner import MOST_INPUT_BYTES
from core.decoding.planner import Planner
from core.drafting.draft import Draft, Drafter
from core.drafting.registry import DRAFTERS
from core.errors import RequestError
from core.settings.drafting import Gate
from tests.tuning import replay as bench
from tests.tuning.__main__ import main
from tests.tuning.replay import COST_TABLES, replay, replay_stream
from tests.tuning.streams import Stream, read_streams, write_streams
from tests.tuning.test_reliability import worst_error

ALWAYS = Gate(mode="always")


class Fixed(Drafter):
    """Drafts one after the other of what it was given."""

    def __init__(self, *drafts: Draft) -> None:
        self._drafts = list(drafts)

    def draft(self, budget: int) -> Draft:
        return self._drafts.pop(0).prefix(budget) if self._drafts else Draft()


def cost(width: int, tree: bool = False) -> float:
    return 1.0 + 0.1 * (width - 1)


def test_plain_decoding_costs_a_step_a_token() -> None:
    tally = replay_stream(Drafter(), Stream([1, 2], [3, 4, 5]), cost, ALWAYS)
    assert (tally.tokens, tally.steps, tally.cost, tally.speed) == (3, 3, 3.0, 1.0)


def test_a_chain_is_accepted_to_its_first_error() -> None:
    drafter = Fixed(Draft.chain([3, 4, 9]))
    tally = replay_stream(drafter, Stream([1, 2], [3, 4, 5, 6, 7]), cost, ALWAYS)
    assert (tally.tokens, tally.steps, tally.accepted, tally.tested) == (5, 3, 2, 3)
    assert tally.cost == pytest.approx(cost(4) + 2)


def test_a_tree_is_walked_along_the_answer() -> None:
    tree = Draft((9, 3, 8, 4, 5), (-1, -1, 1, 1, 3))
    tally = replay_stream(Fixed(tree), Stream([1], [3, 4, 5, 6, 7, 8, 9]), cost, ALWAYS)
    assert (tally.accepted, tally.steps) == (3, 4)


def test_the_last_token_is_never_drafted() -> None:
    tally = replay_stream(Fixed(Draft.chain([3, 4, 5])), Stream([1], [3, 4]), cost, ALWAYS)
    assert (tally.tokens, tally.accepted, tally.steps) == (2, 1, 1)


@given(st.sampled_from(sorted(COST_TABLES)), st.integers(1, 200))
def test_tables_are_one_at_one_and_never_negative(name: str, width: int) -> None:
    table = COST_TABLES[name]
    assert table.cost(1) == 1.0
    assert table.cost(width) >= 1.0


def test_tables_go_through_their_points_and_between_them() -> None:
    table = COST_TABLES["m4-pro"]
    assert table.cost(4) == 1.47
    assert table.cost(5) == pytest.approx((1.47 + 2.07) / 2)
    assert table.cost(13) == table.cost(32) == table.cost(33) / 2
    assert COST_TABLES["cpu"].cost(8) == pytest.approx((1.48 + 1.64) / 2)


@pytest.mark.parametrize("name", [name for name, spec in DRAFTERS.items() if not spec.needs_proposer])
def test_every_drafter_replays(name: str) -> None:
    phrase = [7, 8, 9, 10, 11, 12, 13, 14]
    stream = Stream(phrase * 6, phrase * 8, "loop")
    row = replay(name, [stream], COST_TABLES["cpu"], "always")
    assert row.kinds.keys() == {"loop"}
    assert row.speed == pytest.approx(1.0) if name == "off" else row.speed > 1.2


def test_a_planner_verifies_what_pays_and_the_gate_stays_open() -> None:
    sure = Draft((3, 4, 5), (-1, 0, 1), (0.99, 0.99, 0.01))
    stream = Stream([1, 2], [3, 4, 5, 6, 7])
    gated = Gate()  # rests at first: nothing in the prompt repeats
    tally = replay_stream(Fixed(sure), stream, cost, gated, Planner(cost))
    # The third guess was right, and rightly too unlikely to verify.
    assert (tally.accepted, tally.tested, tally.steps) == (2, 2, 3)
    assert [fate.accepted for fate in tally.fates] == [True, True]
    assert replay_stream(Fixed(sure), stream, cost, gated).steps == 5


def test_auto_plans_by_the_cost_and_reports_its_reliability() -> None:
    phrase = list(range(7, 40))
    stream = Stream(phrase * 3, phrase * 6, "loop")
    cheap, dear = (replay("auto", [stream], COST_TABLES[name], "auto") for name in ("cpu-256", "apple"))
    assert cheap.mean_per_step > dear.mean_per_step > 2
    assert sum(decile.nodes for decile in cheap.reliability) > 100
    # What is certain is promised as nearly certain.
    assert worst_error(cheap.reliability, 100) < 0.05


def test_streams_survive_the_disk(tmp_path: Path) -> None:
    streams = [Stream([1, 2], [3], "a", [[3, 4]]), Stream([5], [6, 7])]
    for name in ("s.jsonl", "s.jsonl.gz"):
        write_streams(tmp_path / name, streams)
        assert read_streams(tmp_path / name) == streams


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "no streams"), (b'{"prompt": [1]}', "line 1"), (b'{"prompt": [1], "out": ["a"]}', "line 1")],
)
def test_bad_streams_are_refused_by_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(RequestError, match=words):
        read_streams(path)
    path.write_bytes(b"not gzip")
    with pytest.raises(RequestError, match="cannot be read"):
        read_streams(path)
    path.write_bytes(gzip.compress(bytes(MOST_INPUT_BYTES + 1)))
    with pytest.raises(RequestError, match="the most that is read"):
        read_streams(path)


def test_the_command_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "streams.jsonl"
    write_streams(path, [Stream([1, 2, 3, 4] * 5, [1, 2, 3, 4] * 5, "loop")])
    out = tmp_path / "out"
    status = main(["replay", "--streams", str(path), "--gates", "always,auto", "--out", str(out)])
    assert status == 0
    rows = (out / "replay.jsonl").read_text().splitlines()[1:]
    drafters = [name for name, spec in DRAFTERS.items() if not spec.needs_proposer]
    assert len(rows) == len(drafters) * 2 * 2
    assert (out / "replay.md").read_text() == capsys.readouterr().out


def test_a_grid_is_replayed_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "streams.jsonl"
    write_streams(path, [Stream([1, 2, 3, 4] * 5, [1, 2, 3, 4] * 5, "loop")])
    out = tmp_path / "out"
    command = ["replay", "--streams", str(path), "--drafters", "ngram-mod", "--out", str(out)]
    command += ["--set", "ngram_mod.k=2,4,6,8", "--set", "ngram_mod.n=4", "--costs", "cpu"]
    honest, calls = bench.replay, []

    def third_is_stopped(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(*arguments)

    monkeypatch.setattr(bench, "replay", third_is_stopped)
    assert main(command) == 130
    assert "2 of 4" in capsys.readouterr().err
    assert "Stopped after 2 of 4" in (out / "replay.md").read_text()
    assert main(command) == 0
    assert len(calls) == 5, "two were not made again"
    rows = [json.loads(line) for line in (out / "replay.jsonl").read_text().splitlines()[1:]]
    assert [row["given"]["ngram_mod.k"] for row in rows] == ["2", "4", "6", "8"]
    assert [row["drafter"] for row in rows] == [f"ngram-mod k={k} n=4" for k in (2, 4, 6, 8)]
    assert rows[0]["mean_per_step"] < rows[3]["mean_per_step"]
    assert main([*command[:-4], "--set", "gate.mode=auto"]) == 1

"""The tables bench: what it says of a few short streams, and of a toy model."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import msgspec
import pytest

from core.bench import table_conversation, table_replay, tables
from core.bench.cost_table import cost_table
from core.bench.table_conversation import Edits, read_edits
from core.bench.tables import TableResults, run
from core.bench.truncated import without_layers
from core.errors import RequestError
from core.models.loader import load
from core.rehearsal.streams import Stream, write_streams

RNG = random.Random(4)
STREAMS = [
    Stream([RNG.randrange(900) for _ in range(60)], [RNG.randrange(900) for _ in range(60)]) for _ in range(4)
]


def options(tmp_path: Path, **values: object) -> argparse.Namespace:
    chosen = {"model": "", "streams": None, "parts": "timing", "pairs": 1, "max_tokens": 30}
    return argparse.Namespace(out=tmp_path / "out", **{**chosen, "drafters": "ngram-mod", **values})


def test_a_return_is_faster_where_the_table_still_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_replay, "SIZES", (2**12, 2**16))
    monkeypatch.setattr(table_replay, "LOADS", (0, 20_000))
    rows = list(table_replay.table_sizes(STREAMS, cost_table("cpu")))
    small, large, crowded, roomy = rows
    assert large.again > 2 * large.first
    assert roomy.again > crowded.again
    assert crowded.overwrites > roomy.overwrites
    assert small.other_tokens == 0


def test_poison_costs_and_heals() -> None:
    rows = {(row.drafter, row.poison): row for row in table_replay.poison(STREAMS, [cost_table("cpu")])}
    mod = rows["ngram-mod", "every slot of its table"]
    assert mod.each < mod.clean
    trusting = rows["auto", "a calibration that trusts everything"]
    assert trusting.each <= trusting.once
    wary = rows["auto", "every slot of the n-gram table"]
    assert wary.each >= 0.95 * wary.clean
    assert wary.once >= 0.95 * wary.clean


def test_frozen_tables_come_from_the_other_half() -> None:
    repeated = [Stream([1, 2, 3, i], [7, 8, 9] * 6) for i in range(10, 14)]
    rows = {row.mode: row for row in table_replay.frozen_modes(repeated, [cost_table("cpu")])}
    assert rows["frozen"].mean_per_step > 2
    assert rows["dual"].mean_per_step >= rows["dynamic"].mean_per_step


def test_the_parts_on_streams_write_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_replay, "SIZES", (2**12,))
    monkeypatch.setattr(table_replay, "LOADS", (0,))
    monkeypatch.setattr(table_replay, "LEADERS", (1,))
    monkeypatch.setattr(table_replay, "FOLLOWERS", (2, 3))
    monkeypatch.setattr(tables, "_ENTRIES", 2000)
    monkeypatch.setattr(tables, "_REPEATS", 1)
    path = tmp_path / "s.jsonl.gz"
    write_streams(path, STREAMS)
    chosen = options(tmp_path, streams=path, parts="sizes,cacheback,poison,timing")
    assert run(chosen) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    assert (len(results.sizes), len(results.modes), len(results.lengths)) == (1, 6, 2)
    assert len(results.poison) == 8
    assert results.timing[0].entries >= 2000
    report = capsys.readouterr().out
    for title in ("Table size", "Cacheback", "LL × FL", "Poison", "Saving and loading"):
        assert title in report


@pytest.mark.parametrize("drafter", ["ngram-mod", "auto"])
def test_cold_and_warm_with_a_toy(
    tmp_path: Path,
    toy_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drafter: str,
) -> None:
    short = Edits("a = 1\nb = 2\n", ("Hello hello hello.", "More."), ("Other.",))
    monkeypatch.setattr(tables, "read_edits", lambda: short)
    assert run(options(tmp_path, model=str(toy_folder), parts="conversation", drafters=drafter)) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=TableResults)
    assert len(results.conversation) == 3 * 3
    same = {row.turn: row for row in results.conversation if row.warmed_by == "the same questions"}
    assert same[1].warm_accepted > same[1].cold_accepted
    assert same[1].steps_saved > 1.2
    assert all(row.equal for row in results.conversation)
    assert "without layer 1" in capsys.readouterr().out


def test_a_copy_without_a_layer_is_of_the_family_and_says_other_things(
    toy_folder: Path, tmp_path: Path
) -> None:
    copy, whole = load(str(without_layers(toy_folder, {0}, tmp_path / "copy"))), load(str(toy_folder))
    assert copy.info.family == whole.info.family
    assert copy.info.layers == whole.info.layers - 1
    kept = dict(copy.model.layers[0].parameters()["mlp"]["down_proj"])["weight"]
    assert bool((kept == whole.model.layers[1].mlp.down_proj.weight).all())


def test_the_shipped_conversation_has_four_turns() -> None:
    edits = read_edits()
    assert len(edits.turns) == len(edits.earlier) == 4
    compile(edits.file, "stock.py", "exec")
    assert table_conversation.resources_dir().is_dir()


def test_wrong_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no part called “size”"):
        run(options(tmp_path, parts="size"))
    with pytest.raises(RequestError, match="none were given"):
        run(options(tmp_path, parts="sizes"))

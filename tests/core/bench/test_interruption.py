"""Benches stopped by Ctrl-C keep their measurements, and the same command continues."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.bench import decode
from core.bench.harness import Journal
from core.bench.sweep_record import Record
from core.cli import main
from core.system.terminal import STOPPED
from tests.core.toy import write_toy_model
from tests.thinned import thinned

_BEFORE_STOP = 2
_RNG = random.Random(2)

# Arguments, journal file, and number of journal entries of each bench.
BENCHES: dict[str, tuple[list[str], str, int]] = {
    "decode": (["--drafters", "off,frequency", "--pairs", "1", "--max-tokens", "8"], "cells.jsonl", 4),
    "parity": (
        ["--drafters", "frequency,auto", "--lengths", "20", "--runs", "1", "--max-tokens", "8"],
        "cells.jsonl",
        4,
    ),
    "prefill": (
        ["--tokens", "2400", "--pairs", "1", "--keep", "20,50,100", "--scorers", "lexical"],
        "readings.jsonl",
        4,
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "long-toy"
    write_toy_model(folder, max_position_embeddings=4096)
    return folder


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    lines = [{"class": "list", "prompt": "one two one two one two"}, {"class": "tale", "prompt": "once upon"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture(autouse=True)
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure draft times with a short history and few steps."""
    monkeypatch.setattr(decode, "HISTORY_TOKENS", 1_000)
    monkeypatch.setattr(decode, "_STEPS", 50)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Raise KeyboardInterrupt during the third measurement, until it is undone."""
    with pytest.MonkeyPatch.context() as patch:
        add, kept = Journal.add, []

        def until_stopped(journal: Journal[Any], entry: Any) -> None:
            if len(kept) == _BEFORE_STOP:
                raise KeyboardInterrupt
            kept.append(entry)
            add(journal, entry)

        patch.setattr(Journal, "add", until_stopped)
        yield patch


@pytest.mark.parametrize("bench", thinned(BENCHES, keep=list(BENCHES)[:2]))
def test_measurements_are_kept_and_continued(
    bench: str,
    folder: Path,
    prompts: Path,
    tmp_path: Path,
    interrupted: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    more, name, total = BENCHES[bench]
    out = tmp_path / "out"
    words = ["bench", bench, *more, "--out", str(out), "--model", str(folder)]
    if bench != "prefill":
        words += ["--prompts", str(prompts)]

    assert main(words) == STOPPED
    kept = (out / name).read_bytes()
    assert kept.count(b"\n") == 1 + _BEFORE_STOP
    assert f"Stopped. {_BEFORE_STOP} of {total} are in" in capsys.readouterr().err
    assert f"Stopped after {_BEFORE_STOP} of {total} pieces" in (out / "report.md").read_text()

    interrupted.undo()
    assert main([*words, "--quiet"]) == 0
    whole = (out / name).read_bytes()
    assert whole.startswith(kept)
    assert whole.count(b"\n") == 1 + total
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out
    assert "Stopped" not in (out / "report.md").read_text()


def test_an_interrupted_sweep_continues(folder: Path, prompts: Path, tmp_path: Path) -> None:
    words = ["bench", "sweep", "--model", str(folder), "--prompts", str(prompts), "--out", str(tmp_path)]
    words += ["--drafters", "frequency,ngram-simple", "--pairs", "1", "--max-tokens", "8", "--quiet"]
    words += ["--keep", "20,100", "--keep-tokens", "1200"]
    add, added = Record.add, []

    def until_stopped(record: Record, result: Any) -> None:
        if len(added) == stop_at:
            raise KeyboardInterrupt
        added.append(result)
        add(record, result)

    stop_at = 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Record, "add", until_stopped)
        assert main(words) == STOPPED
        held = json.loads((tmp_path / "results.json").read_bytes())
        assert (len(held["cells"]), held["ended"]) == (3, False)
        stop_at = 5  # one cell and one of two readings more
        assert main(words) == STOPPED
        stop_at = 99
        assert main(words) == 0
    whole = json.loads((tmp_path / "results.json").read_bytes())
    assert whole["cells"][:3] == held["cells"]
    assert [len(whole[name]) for name in ("cells", "readings", "likenesses")] == [4, 2, 1]
    assert len(added) == 7
    assert whole["ended"]
    assert whole["answers"] == 8
    assert whole["took_s"] > held["took_s"]
    # A complete sweep is measured again.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Record, "add", until_stopped)
        assert main(words) == 0
    assert len(added) == 14

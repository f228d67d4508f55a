"""The sweep says and writes what it measures, shows differences with both texts, and can be interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.bench.sweep import ENDED, Quiet
from core.cli import main
from core.cli.command_line import parser
from core.decoding import loop
from core.drafting.draft import Draft
from core.events import Failed
from core.events.sweep import (
    SweepCell,
    SweepEnded,
    SweepEvent,
    SweepLikeness,
    SweepProgress,
    SweepReading,
    SweepResults,
    SweepStarted,
    SweepTurn,
    decode_sweep_event,
)
from tests.core.toy import write_toy_model

LINES: list[dict[str, Any]] = [
    {"class": "list", "prompt": "one two one two one two"},
    {"class": "tale", "prompt": "once upon a time"},
    {"class": "talk", "turns": ["one two one two", "again"]},
]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    return path


def words(model: str, prompts: Path, out: Path, *more: str) -> list[str]:
    return [
        *("bench", "sweep", "--model", model, "--prompts", str(prompts), "--out", str(out)),
        *("--drafters", "ngram-simple,frequency", "--pairs", "2", "--max-tokens", "12"),
        *more,
    ]


def results(out: Path) -> SweepResults:
    return msgspec.json.decode((out / "results.json").read_bytes(), type=SweepResults)


def started(command: list[str]) -> subprocess.Popen[bytes]:
    """A sweep in a process of its own, whose stdin stays open as a window keeps it."""
    return subprocess.Popen(
        [sys.executable, "-m", "core.cli", *command, "--json"],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        # Threads of several processes that wait for each other would take longer than the work.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def stream(command: list[str]) -> tuple[int, list[SweepEvent]]:
    """All that it says, and its status."""
    process = started(command)
    assert process.stdout
    assert process.stdin
    events = [decode_sweep_event(line) for line in process.stdout]
    status = process.wait()
    process.stdin.close()
    process.stdout.close()
    return status, events


def test_a_grid_over_two_settings_is_their_product(toy_folder: Path, prompts: Path, tmp_path: Path) -> None:
    grids = ("--grid", "ngram_simple.k=2,4", "--grid", "ngram_simple.n_min=1,3", "--classes", "list")
    assert main(words(str(toy_folder), prompts, tmp_path / "out", *grids)) == 0
    found = results(tmp_path / "out")
    product = [f"ngram-simple k={k} n_min={n_min}" for k in (2, 4) for n_min in (1, 3)]
    # `frequency` looks at neither, and a draft is never longer than what was asked for.
    assert list(found.drafters) == [*product, "frequency"]
    assert [cell.drafter for cell in found.cells] == [*product, "frequency"]
    assert all(len(cell.positions) <= 2 for cell in found.cells if " k=2 " in cell.drafter)


def test_every_drafter_on_every_class(toy_folder: Path, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(words(str(toy_folder), prompts, out, "--classes", "list,tale")) == 0
    found = results(out)
    assert found.ended
    assert [(cell.kind, cell.drafter) for cell in found.cells] == [
        ("list", "ngram-simple"),
        ("list", "frequency"),
        ("tale", "ngram-simple"),
        ("tale", "frequency"),
    ]
    for cell in found.cells:
        assert len(cell.pairs) == 2
        assert cell.tokens == 12
        assert all(pair.equal and pair.ratio > 0 and pair.ttft_s > 0 for pair in cell.pairs)
    assert found.answers == 2 * 2 * 2 * 2
    assert found.seconds_an_answer > 0
    report = (out / "report.md").read_text()
    assert "8 of 8 drafted answers are identical." in report
    assert not list(out.glob("*.part"))


def test_an_answer_of_one_token_has_nothing_to_compare(
    toy_folder: Path, prompts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = words(str(toy_folder), prompts, out, "--classes", "list")
    command[command.index("--max-tokens") + 1] = "1"
    assert main(command) == 0
    assert [pair.ratio for cell in results(out).cells for pair in cell.pairs] == [0.0] * 4
    report = (out / "report.md").read_text()
    assert report.count("| nothing to compare | – | – | – | – |") == 2


def test_the_stream_says_it_all(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # Long enough that something is skipped: the last 512 tokens are always read.
    write_toy_model(tmp_path / "toy", max_position_embeddings=2048)
    command = words(str(tmp_path / "toy"), prompts, out, "--keep", "10,100", "--keep-tokens", "900")
    command[command.index("--drafters") + 1] = "ngram-simple"
    command[command.index("--pairs") + 1] = "1"
    command[command.index("--max-tokens") + 1] = "6"
    status, events = stream(command)
    assert status == 0
    first = events[0]
    assert isinstance(first, SweepStarted)
    assert (first.answers, first.readings) == (2 * (2 + 2), 1 + 2 + 2 * 2)
    assert isinstance(events[-1], SweepEnded)
    progress = [event for event in events if isinstance(event, SweepProgress)]
    assert progress[-1].done == progress[-1].total == first.answers + first.readings
    assert [p.done for p in progress] == sorted(p.done for p in progress)
    assert progress[-1].seconds_left == 0.0
    found = results(out)
    assert [event for event in events if isinstance(event, SweepCell)] == list(found.cells)
    assert [event for event in events if isinstance(event, SweepTurn)] == list(found.turns)
    assert [(turn.drafter, turn.turn) for turn in found.turns] == [
        ("ngram-simple", 1),
        ("ngram-simple", 2),
    ]
    readings = [event for event in events if isinstance(event, SweepReading)]
    assert [(reading.keep_pct, reading.ran) for reading in readings] == [(10.0, "sparse"), (100.0, "dense")]
    assert readings[0].read_tokens < readings[1].read_tokens == readings[1].prompt_tokens
    (likeness,) = (event for event in events if isinstance(event, SweepLikeness))
    assert likeness.documents == 2
    assert 0.0 <= likeness.agreement <= 1.0


def test_a_difference_has_both_texts(
    toy_folder: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = loop.walk

    def gullible(draft: Draft, choices: list[int], *rest: object) -> object:
        """Accepts every draft."""
        return honest(draft, [*draft.tokens, choices[-1]])

    monkeypatch.setattr(loop, "walk", gullible)
    out = tmp_path / "out"
    assert main(words(str(toy_folder), prompts, out, "--classes", "list")) == 0
    pairs = [pair for cell in results(out).cells for pair in cell.pairs if not pair.equal]
    assert pairs
    for pair in pairs:
        assert pair.plain_text != pair.drafted_text
        assert pair.margin is not None
        assert not pair.close_call
    assert "NOT a close call" in (out / "report.md").read_text()


def test_what_cannot_be_done_is_said(toy_folder: Path, prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, events = stream(words(str(toy_folder), prompts, out, "--classes", "poem"))
    assert status == 1
    (failed,) = events
    assert isinstance(failed, Failed)
    assert "poem" in failed.message
    assert "list, tale, talk" in failed.hint
    assert main(words(str(tmp_path / "nothing"), prompts, out)) == 1


def test_an_interrupted_run_is_made_again() -> None:
    quiet = Quiet()
    calls = []

    def measure() -> int:
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGCONT)  # as after a stop
            time.sleep(0.01)
        return len(calls)

    try:
        assert quiet.undisturbed(measure) == 2
        assert quiet.undisturbed(measure) == 3
    finally:
        quiet.close()


@pytest.mark.sweep
def test_it_ends_when_told_and_when_its_window_is_gone(
    toy_folder: Path, prompts: Path, tmp_path: Path
) -> None:
    command = words(str(toy_folder), prompts, tmp_path / "out", "--classes", "list,tale")
    command[command.index("--max-tokens") + 1] = "1000"
    command[command.index("--pairs") + 1] = "9"
    for way in ("told", "gone"):
        process = started(command)
        assert process.stdout
        assert process.stdin
        while not isinstance(decode_sweep_event(process.stdout.readline()), SweepStarted):
            pass
        if way == "told":
            process.terminate()
        else:
            process.stdin.close()
        assert process.wait(timeout=30) == ENDED
        process.stdin.close()
        process.stdout.close()
        assert not results(tmp_path / "out").ended


def test_the_options_have_defaults() -> None:
    assert parser().parse_args(["bench", "sweep", "--out", "x"]).pairs == 3

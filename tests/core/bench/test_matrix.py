"""The matrix: records of both sides, compared outputs, runs that continue, the stream for the Lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.bench.cases import BUNDLED
from core.bench.matrix import ENDED, Quiet
from core.bench.runner import Journal
from core.cli import main
from core.decoding import loop
from core.drafting.draft import Draft
from core.events import Failed
from core.events.bench import BenchEnded, BenchEvent, BenchStarted, Record, decode_bench_event
from core.system.terminal import STOPPED
from tests.core.toy import write_toy_model

LINES: list[dict[str, Any]] = [
    {"class": "list", "prompt": "one two one two one two one two"},
    {"class": "tale", "prompt": "once upon a time"},
]
TALK = {"class": "talk", "turns": ["one two one two", "one two again", "and again"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy model with a context long enough for documents."""
    folder = tmp_path_factory.mktemp("models") / "long-toy"
    write_toy_model(folder, max_position_embeddings=4096)
    return folder


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    return path


@pytest.fixture
def gullible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draft is accepted."""
    honest = loop.walk

    def accept(draft: Draft, choices: list[int], *rest: object) -> object:
        return honest(draft, [*draft.tokens, choices[-1]])

    monkeypatch.setattr(loop, "walk", accept)


def words(folder: Path, cases: Path | str, out: Path, *more: str) -> list[str]:
    fixed = ["--model", str(folder), "--cases", str(cases), "--out", str(out), "--pairs", "2"]
    return ["bench", *fixed, "--max-tokens", "12", "--quiet", *more]


def records(out: Path) -> list[Record]:
    _header, *lines = (out / "bench.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Record) for line in lines]


@pytest.mark.sweep
def test_every_case_with_every_configuration(
    folder: Path, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts.write_text("\n".join(map(json.dumps, [*LINES, TALK])))
    more = ("--drafters", "off,ngram-simple", "--set", "ngram_simple.k=2,4", "--set", "ngram_simple.n_min=1")
    assert main(words(folder, prompts, tmp_path, *more)) == 0
    found = records(tmp_path)
    names = ["off", "ngram-simple k=2 n_min=1", "ngram-simple k=4 n_min=1"]
    assert [(each.case, each.configuration, each.repeat) for each in found] == [
        (case, name, repeat) for repeat in (1, 2) for case in ("list", "tale", "talk") for name in names
    ]
    for each in found:
        assert len(each.pairs) == (3 if each.case == "talk" else 1)
        for pair in each.pairs:
            assert pair.equal
            assert pair.compared
            assert pair.ratio > 0
            assert pair.plain_tokens == pair.stats.tokens == 12
            assert min(pair.plain_ttft_s, pair.stats.ttft_s, pair.peak_bytes, pair.plain_peak_bytes) > 0
            assert len(pair.stats.positions) <= (2 if " k=2 " in each.configuration else 4)
    talk = found[6].pairs
    # Each turn continues on what both sides keep.
    assert talk[0].stats.reused_tokens == 0
    assert talk[1].stats.reused_tokens >= talk[0].stats.prompt_tokens - 1
    report = (tmp_path / "bench.md").read_text()
    assert report == capsys.readouterr().out
    assert "30 of 30 compared outputs are equal" in report


@pytest.mark.sweep
@pytest.mark.usefixtures("gullible")
def test_a_difference_fails_and_is_explained_by_margins(folder: Path, prompts: Path, tmp_path: Path) -> None:
    assert main(words(folder, prompts, tmp_path, "--drafters", "ngram-simple")) == 1
    differences = [pair.difference for each in records(tmp_path) for pair in each.pairs if pair.difference]
    assert differences
    for each in differences:
        # mlx-lm's token really wins at both widths: a fault, not noise, and the report says so.
        assert each.margin is not None
        assert each.margin_at_width is not None
        assert min(each.margin, each.margin_at_width) > 0
        assert not each.explained
    assert "NOT within the model's differences between widths" in (tmp_path / "bench.md").read_text()


def test_an_answer_of_one_token_has_no_decode_time(folder: Path, prompts: Path, tmp_path: Path) -> None:
    assert main([*words(folder, prompts, tmp_path, "--drafters", "off"), "--max-tokens", "1"]) == 0
    assert [pair.ratio for each in records(tmp_path) for pair in each.pairs] == [0.0] * 4
    report = (tmp_path / "bench.md").read_text()
    assert "## Decoding" not in report


@pytest.mark.sweep
def test_prompts_have_the_exact_lengths(folder: Path, prompts: Path, tmp_path: Path) -> None:
    more = ("--drafters", "auto", "--prompt-tokens", "6,40", "--set", "decoding.exactness=fast,exact")
    assert main([*words(folder, prompts, tmp_path, *more), "--pairs", "1"]) == 0
    found = records(tmp_path)
    assert {(each.case, each.pairs[0].stats.prompt_tokens) for each in found} == {
        (f"{kind}, {length} tokens", length) for kind in ("list", "tale") for length in (6, 40)
    }
    assert {each.configuration for each in found} == {
        "auto decoding.exactness=fast",
        "auto decoding.exactness=exact",
    }


@pytest.mark.sweep
def test_documents_are_read_sparsely(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Ships come and go. " * 60)
    more = ("--prompt-tokens", "1400", "--drafters", "off", "--max-tokens", "1", "--pairs", "1")
    lexical = ("--set", "prefill.keep_pct=20,100", "--set", "prefill.scorer=lexical")
    assert main(words(folder, f"document,{own}", tmp_path / "out", *more, *lexical)) == 0
    fusion = ("--set", "prefill.keep_pct=20", "--set", "prefill.scorer=fusion")
    assert main(words(folder, "document-attached", tmp_path / "fusion", *more, *fusion)) == 0
    for each in (*records(tmp_path / "out"), *records(tmp_path / "fusion")):
        (pair,) = each.pairs
        sparse = "keep_pct=20" in each.configuration
        assert pair.reading == ("sparse" if sparse else "dense")
        assert (pair.stats.score_s > 0) is (pair.stats.skipped_tokens > 0) is sparse
        expected = (1300, 1400) if each.case.startswith("document") else (1100, 1400)
        assert expected[0] < pair.stats.prompt_tokens <= expected[1]
    assert (
        "| document of 1,400 tokens | off prefill.keep_pct=20" in (tmp_path / "out" / "bench.md").read_text()
    )


def test_a_document_that_could_not_be_skipped_fails(folder: Path, tmp_path: Path) -> None:
    """500 tokens are all in the part that is always read."""
    more = ("--prompt-tokens", "500", "--drafters", "off", "--max-tokens", "1", "--pairs", "1")
    assert main(words(folder, "document", tmp_path, *more)) == 1
    assert "prefill.mode on ran as off" in (tmp_path / "bench.md").read_text()


@pytest.mark.parametrize(
    ("cases", "tokens", "said"),
    [
        ("document", "4097", "4,097"),
        ("document", "10", "10 tokens is too short for a document"),
        (f"three-class,{BUNDLED['three-class']}", "600", "given twice"),
        ("editing", "600", "holds conversations"),
    ],
)
def test_cases_that_cannot_be_made(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: str, tokens: str, said: str
) -> None:
    assert main(words(folder, cases, tmp_path, "--prompt-tokens", tokens)) in (1, 2)
    assert said in capsys.readouterr().err


@pytest.mark.sweep
def test_model_defaults_sample_on_both_sides(prompts: Path, tmp_path: Path) -> None:
    write_toy_model(tmp_path / "model")
    defaults = {"do_sample": True, "temperature": 0.8, "top_k": 5}
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps(defaults))
    out = tmp_path / "out"
    more = ("--drafters", "auto,draft-model", "--draft-layers", "1", "--model-defaults")
    assert main([*words(tmp_path / "model", prompts, out, *more), "--pairs", "1"]) == 0
    assert not any(pair.compared for each in records(out) for pair in each.pairs)
    assert "not compared" in (out / "bench.md").read_text()
    own = [each.pairs[0].two_models_per_s > 0 for each in records(out)]
    assert own == [each.configuration == "draft-model" for each in records(out)]


# ---- a stop, and the process of the Lab


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Raises KeyboardInterrupt during the third measurement, until it is undone."""
    with pytest.MonkeyPatch.context() as patch:
        add, kept = Journal.add, []

        def until_stopped(journal: Journal[Any], entry: Any) -> None:
            if len(kept) == 2:
                raise KeyboardInterrupt
            kept.append(entry)
            add(journal, entry)

        patch.setattr(Journal, "add", until_stopped)
        yield patch


@pytest.mark.sweep
def test_a_stopped_run_continues(
    folder: Path,
    prompts: Path,
    tmp_path: Path,
    stopped: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [each for each in words(folder, prompts, tmp_path, "--drafters", "off") if each != "--quiet"]
    assert main(command) == STOPPED
    kept = (tmp_path / "bench.jsonl").read_bytes()
    assert len(records(tmp_path)) == 2
    assert "Stopped. 2 of 4 are in" in capsys.readouterr().err
    assert "Stopped after 2 of 4 pieces" in (tmp_path / "bench.md").read_text()
    stopped.undo()
    # More drafters may be added, other conditions not.
    assert main([*command, "--drafters", "off,frequency", "--quiet"]) == 0
    assert (tmp_path / "bench.jsonl").read_bytes().startswith(kept)
    assert len(records(tmp_path)) == 8
    assert capsys.readouterr().err == ""
    assert main([*command, "--max-tokens", "13"]) == 1
    assert "results of other conditions" in capsys.readouterr().err


def started(command: list[str]) -> subprocess.Popen[bytes]:
    """A bench in a process of its own, whose stdin stays open as the window keeps it."""
    return subprocess.Popen(
        [sys.executable, "-m", "core.cli", *command, "--json"],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        # Threads of several processes that wait for each other would take longer than the work.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def stream(command: list[str]) -> tuple[int, list[BenchEvent]]:
    """The events and the exit status."""
    process = started(command)
    assert process.stdout
    assert process.stdin
    events = [decode_bench_event(line) for line in process.stdout]
    status = process.wait()
    process.stdin.close()
    process.stdout.close()
    return status, events


@pytest.mark.sweep
def test_the_stream_has_every_record(folder: Path, prompts: Path, tmp_path: Path) -> None:
    status, events = stream(words(folder, prompts, tmp_path, "--drafters", "frequency"))
    assert status == 0
    first, *found, last = events
    assert isinstance(first, BenchStarted)
    assert isinstance(last, BenchEnded)
    assert first.records == len(found) == 4
    assert found == records(tmp_path)
    status, (*_, failed) = stream(words(folder, prompts, tmp_path, "--max-tokens", "99"))
    assert status == 1
    assert isinstance(failed, Failed)
    assert "other conditions" in failed.message


@pytest.mark.sweep
@pytest.mark.parametrize("way", ["signal", "end of its parent"])
def test_its_process_ends(folder: Path, prompts: Path, tmp_path: Path, way: str) -> None:
    process = started([*words(folder, prompts, tmp_path), "--max-tokens", "1000", "--pairs", "9"])
    assert process.stdout
    assert process.stdin
    assert isinstance(decode_bench_event(process.stdout.readline()), BenchStarted)
    if way == "signal":
        process.terminate()
    else:
        process.stdin.close()
    assert process.wait(timeout=60) == ENDED
    process.stdin.close()
    process.stdout.close()


def test_a_suspended_measurement_is_repeated() -> None:
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

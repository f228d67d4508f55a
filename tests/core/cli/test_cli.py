"""`draftlight` as a person calls it: output, exit status, words on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.cli import main


def draftlight(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "core.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.sweep
def test_generate_prints_the_answer_and_figures(toy_folder: Path) -> None:
    options = ("--prompt", "hello", "--max-tokens", "8", "--drafter", "off")  # one step has no speed
    done = draftlight("generate", "--model", str(toy_folder), *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "8 tokens" in done.stderr
    assert "tok/s" in done.stderr


@pytest.mark.sweep
def test_generate_json_is_one_event_a_line(toy_folder: Path, tmp_path: Path) -> None:
    document = tmp_path / "notes.txt"
    document.write_text("abc abc abc abc")
    done = draftlight(
        *("generate", "--model", str(toy_folder), "--prompt", "again", "--document", str(document)),
        *("--set", "ngram-simple.n-min=1", "--drafter", "ngram-simple", "--max-tokens", "30", "--json"),
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["type"] == "started"
    tokens = [event for event in events if event["type"] == "token"]
    assert all({"id", "text", "origin", "step", "position"} <= token.keys() for token in tokens)
    last = events[-1]
    assert last["type"] == "finished"
    assert 0 < last["stats"]["tokens"] == len(tokens) <= 30
    assert last["effective"]["drafter"] == "ngram-simple"
    assert last["effective"]["settings"]["ngram_simple"]["n_min"] == 1
    assert last["stats"]["prompt_tokens"] > len("abc abc abc abc")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--prompt", "x", "--drafter", "dowsing"], 2, "ngram-simple"),
        (["--prompt", "x", "--set", "ngram_simple.k=65"], 2, "from 1 to 64"),
        (["--prompt", "x", "--set", "ngram_simple.k"], 2, "group.field=value"),
        (["--prompt", "x", "--set", "nothing.here=1"], 2, "Did you mean"),
        (["--prompt", "x", "--temperature", "hot"], 2, "from 0 to 2"),
        ([], 2, "required"),
        (["--prompt", "  "], 1, "The last message is empty"),
        (["--prompt", "x" * 600], 1, "more than the 511"),
        (["--prompt-file", "/no/such/file"], 2, "cannot be read"),
        (["--messages", "/no/such/file"], 2, "cannot be read"),
    ],
)
def test_what_goes_wrong_is_said(
    toy_folder: Path, arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended: object = main(["generate", "--model", str(toy_folder), *arguments])
    except SystemExit as usage:  # what argparse refuses by itself
        ended = usage.code
    assert ended == status
    assert words in capsys.readouterr().err


@pytest.mark.sweep
def test_help_and_version() -> None:
    assert "generate" in draftlight("--help").stdout
    assert draftlight("--version").stdout.strip()
    assert "ngram_simple.k" in draftlight("generate", "--help").stdout
    assert draftlight("divine").returncode == 2


def test_bounds_are_told_and_whole_numbers_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings"]) == 0
    listed = capsys.readouterr().out
    assert "ngram_simple.k  (a whole number from 1 to 64 tokens; default 7)" in listed
    assert "e+09" not in listed + draftlight("generate", "--help").stdout


def test_without_a_display_the_window_names_the_packages() -> None:
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    done = subprocess.run(
        [sys.executable, "-m", "core.cli"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    if sys.platform == "linux":
        assert done.returncode == 1
        assert "DISPLAY" in done.stderr or "display" in done.stderr


def test_ctrl_c_while_it_is_starting_is_no_traceback() -> None:
    code = (
        "import signal, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'core.cli.command_line': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from core.cli import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "models", "list"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

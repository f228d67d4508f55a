"""Wrong and broken command lines, each as a process of its own.

Seeded lines are put together from the commands and flags that the parser has, and values of which most are
wrong. Their output goes to nobody, to a full disk, or to a reader that leaves after some bytes. None may end
in a traceback, hang, or end with another status than the documented ones. No model is ever loaded: each
line names a model that does not exist.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from core.cli.command_line import parser as command_line_parser
from tests.attack.campaign import Campaign, Outcome, case_random

_LIMIT_S = 60.0
_STATUSES = (0, 1, 2, 141)
# These run until they are stopped.
_SERVICES = ("serve", "follow")
_SERVICE_S = 3.0
# The window's bench opens a window unless it refuses its parts.
_BENCH_WINDOW = ("bench", "window")
_VALUES = (
    *("", "0", "-1", "x", "nan", "1e999", "9" * 400, "1,2,x", ",,", "é\n", "\udc80", "a" * 5000, "-", "--"),
    *("/no/such", "/dev/null", "/dev/full", "/proc/self/mem", ".", "starter/x", "auto", "off", "all", "none"),
    *("ngram_simple.k=65", "ngram_simple.k", "=", "nothing.here=1", "sampling.temperature=nan", "%s", "{}"),
)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            yield _case(seed, case, Path(scratch))


@cache
def _commands() -> dict[tuple[str, ...], tuple[str, ...]]:
    """The flags of every command, read from the parser itself."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}

    def collect(words: tuple[str, ...], parser: argparse.ArgumentParser) -> None:
        groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        for name, below in (item for group in groups for item in group.choices.items()):
            collect((*words, name), below)
        if not groups or (words and parser.get_default("run")):  # alone, `draftlight` opens a window
            found[words] = tuple(flag for action in parser._actions for flag in action.option_strings)

    collect((), command_line_parser())
    return found


def _line(rng: random.Random, scratch: Path) -> list[str]:
    commands = _commands()
    words = rng.choice(list(commands))
    line, own = list(words), commands[words]
    if rng.random() < 0.05:
        line = rng.choice((["divine"], ["--help"], ["--version"], line[:1]))
    others = sorted({flag for flags in commands.values() for flag in flags} | {"-x"})
    for _ in range(rng.randrange(5)):
        line.append(rng.choice(own if rng.random() < 0.7 else others))
        if rng.random() < 0.7:
            line.append(rng.choice((*_VALUES, str(scratch), str(scratch / "out"))))
    if words == _BENCH_WINDOW:
        line += ["--parts", "foo"]
    for flag in ("--model", "--tokenizer"):
        if flag in own:
            line += [flag, str(scratch / "no-model")]
    return line


def _case(seed: int, case: int, scratch: Path) -> Outcome:
    rng = case_random("command-line", seed, case)
    line = _line(rng, scratch)
    where = rng.choice(("read", "read", "full", "gone", "some"))
    full = os.open("/dev/full", os.O_WRONLY) if where == "full" and os.path.exists("/dev/full") else None
    environment = {**os.environ, "DRAFTLIGHT_HOME": str(scratch / "home"), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "core.cli", *line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if full is None else full,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        if process.stdout is not None and where in ("gone", "some"):
            if where == "some":
                process.stdout.read(rng.choice((1, 100)))
            process.stdout.close()
            process.stdout = None
        if line[0] in _SERVICES:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_SERVICE_S)
            process.terminate()
        said = process.communicate(timeout=_LIMIT_S)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Outcome(case, f"{line} did not end in {_LIMIT_S:.0f} s")
    finally:
        if full is not None:
            os.close(full)
    fault = ""
    if "Traceback" in said or "Exception ignored" in said:
        fault = f"{line}, {where}: {said.strip().splitlines()[-1]}"
    elif process.returncode not in (*_STATUSES, *([-signal.SIGTERM] if line[0] in _SERVICES else [])):
        fault = f"{line}, {where}: status {process.returncode}"
    elif process.returncode in (1, 2) and not said.strip():
        fault = f"{line}, {where}: status {process.returncode} without a word"
    return Outcome(case, fault, {f"status {process.returncode}": 1.0})


CAMPAIGN = Campaign(
    "command-line",
    "No command line ends in a traceback, hangs, fails without a word or with an undocumented status",
    5,
    400,
    _run,
)

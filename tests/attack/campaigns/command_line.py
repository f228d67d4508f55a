"""Wrong and broken command lines, each as a process of its own.

Seeded lines are put together from every command's words, flags and values, most of them wrong, with
their output to nobody, to a full disk, or to a reader that leaves after some bytes. None may end in a
traceback, hang, or end with another status than the documented ones. No model is ever loaded: each
line names one that is not there.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.attack.campaign import Campaign, Outcome, case_random

_LIMIT_S = 60.0
_STATUSES = (0, 1, 2, 141)
_COMMANDS = (
    *(["generate"], ["divine"], ["--help"], ["--version"], ["bench", "window", "--parts", "foo"]),
    *(["models", action] for action in ["list", "download", "import", "remove", "profile"]),
    *(
        ["tables", action]
        for action in ["list", "show", "save", "load", "export", "import", "reset", "build"]
    ),
    *(
        ["bench", name]
        for name in ["decode", "parity", "prefill", "quality", "tables", "sweep", "replay", "fit"]
    ),
)
_FLAGS = [
    "--prompt",
    "--prompt-file",
    "--messages",
    "--document",
    "--drafter",
    "--set",
    "--max-tokens",
    "--json",
    "--temperature",
    "--seed",
    "--keep-pct",
    "--scorer",
    "--quiet",
    "--pairs",
    "--k",
    "--n-min",
    "--lengths",
    "--runs",
    "--keep",
    "--tokens",
    "--kind",
    "--tasks",
    "--readers",
    "--parts",
    "--streams",
    "--out",
    "--yes",
    "--n",
    "--slots",
    "--context",
    "--corpus",
    "--kbytes",
    "--help",
    "--costs",
    "--gates",
    "--drafters",
    "-x",
]
_VALUES = (
    *("", "0", "-1", "x", "nan", "1e999", "9" * 400, "1,2,x", ",,", "é\n", "\udc80", "a" * 5000, "-", "--"),
    *("/no/such", "/dev/null", "/dev/full", "/proc/self/mem", ".", "starter/x", "auto", "off", "all", "none"),
    *("ngram_simple.k=65", "ngram_simple.k", "=", "nothing.here=1", "sampling.temperature=nan", "%s", "{}"),
)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            yield _case(seed, case, Path(scratch))


def _line(rng: random.Random, scratch: Path) -> list[str]:
    line = list(rng.choice(_COMMANDS))
    for _ in range(rng.randrange(5)):
        line.append(rng.choice(_FLAGS))
        if rng.random() < 0.7:
            line.append(rng.choice((*_VALUES, str(scratch), str(scratch / "out"))))
    if line[0] == "generate" or line[:2] == ["models", "profile"] or line[0] == "bench":
        line += ["--model", str(scratch / "no-model")]
    if line[:2] == ["tables", "build"]:
        line += ["--tokenizer", str(scratch / "no-model")]
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
    elif process.returncode not in _STATUSES:
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

"""`python -m tests.attack [NAME …]`: run campaigns, two at a time, each in a separate process.

Each run has a new seed unless `--seed` gives one; the seed is printed, and each fault is reported with the
command that repeats its case. Outcomes are appended to OUT/NAME.jsonl, and the table is written to
OUT/attack.md at the end. The exit status is 1 if a case failed or did not run, or if a process died.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tests.attack.campaign import new_seed
from tests.attack.registry import NAMES, campaign
from tests.attack.tally import Tally, read_outcomes, table, tally

_AT_ONCE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named campaigns; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (default all)")
    parser.add_argument("--seed", type=int, help="repeat the cases of an earlier run (default: a new seed)")
    parser.add_argument("--count", type=int, help="cases of each campaign (default: its own number)")
    parser.add_argument("--case", type=int, help="run only this case, in this process, with its traceback")
    parser.add_argument("--minutes", type=float, default=60.0, help="time limit (default 60)")
    parser.add_argument("--out", type=Path, default=Path("out/attack"), metavar="DIR")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    names = options.names or list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no campaign {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.seed is None:
        options.seed = new_seed()
    print(f"seed {options.seed}", file=sys.stderr, flush=True)
    if options.inside or options.case is not None:
        cases = range(options.count or 0) if options.case is None else [options.case]
        return _inside(names[0], options.seed, cases)
    options.out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.minutes * 60
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        tallies = list(pool.map(lambda name: _outside(name, options, deadline), names))
    text = f"Seed {options.seed}.\n\n{table(tallies)}"
    (options.out / "attack.md").write_text(text)
    print(text, end="")
    return 0 if all(one.passed for one in tallies) else 1


def _inside(name: str, seed: int, cases: Sequence[int]) -> int:
    """The campaign's own process: one JSON line a case on stdout, which is taken before others print."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    lines = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for outcome in campaign(name).run(seed, cases):
        lines.write(msgspec.json.encode(outcome) + b"\n")
        lines.flush()
    return 0


def _outside(name: str, options: argparse.Namespace, deadline: float) -> Tally:
    chosen = campaign(name)
    count = options.count or chosen.full
    command = [sys.executable, "-m", "tests.attack", name, "--inside"]
    command += ["--seed", str(options.seed), "--count", str(count)]
    path, log = options.out / f"{name}.jsonl", options.out / f"{name}.log"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "QT_QPA_PLATFORM": "offscreen"}
    started, ended = time.monotonic(), ""
    with path.open("wb") as out, log.open("wb") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        try:
            returncode = process.wait(max(0.0, deadline - time.monotonic()))
            ended = f"its process ended with {returncode}; see {log}" if returncode else ""
        except subprocess.TimeoutExpired:
            ended = "stopped: the time was up"
            os.killpg(process.pid, 9)
            process.wait()
    seconds = time.monotonic() - started
    return tally(chosen, count, read_outcomes(path), seconds, ended, options.seed)


if __name__ == "__main__":
    raise SystemExit(main())

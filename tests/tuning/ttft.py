"""Time to first token of a fresh installation, with and without drafts.

    python -m tests.tuning ttft --out DIR

Runs whole `draftlight generate --json` processes in pairs, each with an empty home folder: no machine
profile, no tables. So everything a drafter does before the first token is included.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from functools import partial

from msgspec import Struct

from core.bench.cases import default_prompts, file_label, read_prompts
from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    compare,
    conditions,
    describe,
    measure,
    median,
    publish,
    sign_test,
)
from core.errors import RequestError, WorkerError
from core.events import Finished, decode_event
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment

_TOKENS = 4


class ChildStart(Struct, frozen=True):
    """One process: the TTFT that it reports, and the time from its start to its first token."""

    pair: int
    drafter: str
    ttft_s: float
    first_token_s: float

    @property
    def key(self) -> tuple[int, str]:
        return self.pair, self.drafter


class TtftResults(Struct, frozen=True):
    """The content of `results.json`, from complete pairs.

    `ratio` is median TTFT with drafts / without; `started_ratio` the same from the start of the process.
    """

    kind: str
    environment: Environment
    model: str
    drafter: str
    prompt: str
    off: tuple[ChildStart, ...]
    drafting: tuple[ChildStart, ...]
    ratio: float
    started_ratio: float
    p: float
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `starts.jsonl`, `results.json` and `report.md`."""
    path = options.prompts or default_prompts()
    prompt = next((each.prompt for each in read_prompts(path) if each.prompt), "")
    if not prompt:
        raise RequestError(f"{path} holds no line with `prompt`.", "Choose a file with such a line.")
    environment = describe()
    model = _folder(options.model)
    journal = Journal(
        options.out / "starts.jsonl",
        conditions(environment, model, file_label(path)),
        ChildStart,
    )
    ways = ("off", options.drafter)
    pieces = [
        BenchPiece((pair, drafter), partial(_start, pair, model, drafter, prompt))
        for pair in range(options.pairs)
        for drafter in (ways if pair % 2 == 0 else ways[::-1])
    ]
    measured, progress = measure(
        journal,
        pieces,
        lambda start: [f"pair {start.pair + 1}, {start.drafter}: TTFT {start.ttft_s:.3f} s"],
        quiet=options.quiet,
    )
    held = {start.key: start for start in measured}
    whole = [pair for pair in range(options.pairs) if all((pair, drafter) in held for drafter in ways)]
    off, drafting = (tuple(held[pair, drafter] for pair in whole) for drafter in ways)
    off_s, drafting_s = ([start.ttft_s for start in starts] for starts in (off, drafting))
    started_off, started = ([start.first_token_s for start in starts] for starts in (off, drafting))
    results = TtftResults(
        "ttft",
        environment,
        options.model,
        options.drafter,
        path.name,
        off,
        drafting,
        median(drafting_s) / median(off_s) if whole else 0.0,
        median(started) / median(started_off) if whole else 0.0,
        sign_test(*compare(drafting_s, off_s)) if whole else 0.0,
        progress,
    )
    publish(options.out, results, write_report(results))
    return progress.status(True)


def write_report(results: TtftResults) -> str:
    """Both medians and their ratios as Markdown."""
    rows = []
    for name, starts in (("off", results.off), (results.drafter, results.drafting)):
        if not starts:
            continue
        times = sorted(start.ttft_s for start in starts)
        first = median(start.first_token_s for start in starts)
        rows.append(f"| {name} | {median(times):.3f} | {times[0]:.3f} to {times[-1]:.3f} | {first:.2f} |")
    return "\n".join(
        [
            "# TTFT without a profile",
            "",
            *results.progress.lines,
            results.environment.line,
            "",
            f"{results.model}, the first prompt of {results.prompt}, {len(results.off)} pairs of processes,"
            " each with an empty home folder.",
            "",
            "| drafter | median TTFT, s | from to | first token after the start, s |",
            "|---|---:|---:|---:|",
            *rows,
            "",
            f"Ratio of the medians {results.ratio:.3f} (sign test p = {results.p:.2f}); from the process's"
            f" start {results.started_ratio:.3f}.",
            "",
        ]
    )


def _start(pair: int, model: str, drafter: str, prompt: str) -> ChildStart:
    with tempfile.TemporaryDirectory(prefix="draftlight-ttft-") as home:
        words = ["generate", "--model", model, "--prompt", prompt, "--drafter", drafter, "--json", "--quiet"]
        command = child_command(*words, "--max-tokens", str(_TOKENS))
        started, first_s, ttft_s = time.perf_counter(), 0.0, 0.0
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=CHILD_FOLDER,
            env=child_environment(DRAFTLIGHT_HOME=home),
        ) as process:
            assert process.stdout is not None
            last = b""
            for line in process.stdout:
                last = line
                if not first_s and line.startswith(b'{"type":"token"'):
                    first_s = time.perf_counter() - started
        if process.returncode == 0:
            end = decode_event(last)
            if isinstance(end, Finished):
                ttft_s = end.stats.ttft_s
        if not (ttft_s and first_s):
            raise WorkerError(
                f"An answer with {drafter} failed: {last.decode(errors='replace')[:300].strip()}",
                "Run `draftlight generate` with it to see why.",
            )
    return ChildStart(pair, drafter, ttft_s, first_s)


def _folder(reference: str) -> str:
    """The model folder. The starter is unpacked once, not in the home folder of each process."""
    from core.models.runtime import prepare

    prepare()
    from core.models.starter import STARTER, ensure_starter

    return str(ensure_starter()) if reference == STARTER else absolute_reference(reference)

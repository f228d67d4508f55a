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
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from core.bench.cases import BUNDLED, read_prompts
from core.bench.runner import Bench, BenchPiece, compare, describe, file_label, run_bench, sign_test, table
from core.errors import RequestError, WorkerError
from core.events import Finished, decode_event
from core.events.bench import median
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


def run(options: argparse.Namespace) -> int:
    """Measure and write `ttft.jsonl` and `ttft.md`."""
    path = options.prompts or BUNDLED["three-class"]
    prompt = next((each.prompt for each in read_prompts(path) if each.prompt), "")
    if not prompt:
        raise RequestError(f"{path} holds no line with `prompt`.", "Choose a file with such a line.")
    model = _folder(options.model)
    ways = ("off", options.drafter)
    pieces = [
        BenchPiece((pair, drafter), partial(_start, pair, model, drafter, prompt))
        for pair in range(options.pairs)
        for drafter in (ways if pair % 2 == 0 else ways[::-1])
    ]
    title = f"TTFT without a profile, {options.model}"
    bench = Bench("ttft", title, describe(), (model, file_label(path)), ChildStart, options.out)
    return run_bench(bench, pieces, _line, partial(report, ways), quiet=options.quiet)[1].status(True)


def _line(start: ChildStart) -> str:
    return f"pair {start.pair + 1}, {start.drafter}: TTFT {start.ttft_s:.3f} s"


def report(ways: tuple[str, str], measured: Sequence[ChildStart]) -> list[str]:
    """Both medians and their ratios, from complete pairs."""
    held = {start.key: start for start in measured}
    pairs = dict.fromkeys(start.pair for start in measured)
    whole = [pair for pair in pairs if all((pair, drafter) in held for drafter in ways)]
    if not whole:
        return ["No complete pair."]
    rows, firsts, ttfts = [], [], []
    for drafter in ways:
        times = [held[pair, drafter].ttft_s for pair in whole]
        ttfts.append(times)
        firsts.append(median(held[pair, drafter].first_token_s for pair in whole))
        rows.append(
            f"{drafter} | {median(times):.3f} | {min(times):.3f} to {max(times):.3f} | {firsts[-1]:.2f}"
        )
    return [
        f"{len(whole)} pairs of processes, each with an empty home folder.",
        "",
        *table("drafter | median TTFT, s | from to | first token after the start, s", rows, right_from=1),
        "",
        f"Ratio of the medians {median(ttfts[1]) / median(ttfts[0]):.3f} (sign test p ="
        f" {sign_test(*compare(ttfts[1], ttfts[0])):.2f}); from the process's start"
        f" {firsts[1] / firsts[0]:.3f}.",
    ]


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

"""`draftlight bench ttft`: does drafting keep the first token waiting where nothing was measured yet?

Whole processes of `draftlight generate --json` in turn, with drafts and without, each with an empty home
folder: no profile, no verdict but those that ship, no tables. So whatever a drafter makes, loads or tries
before the first token is in the figure. The order changes from pair to pair.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time

import msgspec
from msgspec import Struct

from core.bench.environment import Environment, describe
from core.bench.prompts import default_prompts, read_prompts
from core.bench.statistic import compare, median, sign_test
from core.errors import RequestError, WorkerError
from core.events import Finished, decode_event
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment

_TOKENS = 4


class Start(Struct, frozen=True):
    """One process: what it says its TTFT was, and when its first token came after it was started."""

    ttft_s: float
    first_token_s: float


class TtftResults(Struct, frozen=True):
    """`ratio`: median TTFT with drafts by the one without; `started_ratio`: from the processes' starts."""

    kind: str
    environment: Environment
    model: str
    drafter: str
    prompt: str
    off: tuple[Start, ...]
    drafting: tuple[Start, ...]
    ratio: float
    started_ratio: float
    p: float


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`."""
    path = options.prompts or default_prompts()
    prompt = next((each.prompt for each in read_prompts(path) if each.prompt), "")
    if not prompt:
        raise RequestError(f"{path} holds no line with `prompt`.", "Choose a file that has one.")
    options.out.mkdir(parents=True, exist_ok=True)
    model = _folder(options.model)
    found: dict[str, list[Start]] = {"off": [], options.drafter: []}
    for pair in range(options.pairs):
        order = list(found) if pair % 2 == 0 else list(found)[::-1]
        for drafter in order:
            found[drafter].append(_start(model, drafter, prompt))
        off, drafting = found["off"][-1], found[options.drafter][-1]
        print(
            f"pair {pair + 1}: TTFT {off.ttft_s:.3f} s off, {drafting.ttft_s:.3f} s {options.drafter}",
            file=sys.stderr,
            flush=True,
        )
    off_s, drafting_s = ([each.ttft_s for each in starts] for starts in found.values())
    started_off, started = ([each.first_token_s for each in starts] for starts in found.values())
    results = TtftResults(
        "ttft",
        describe(),
        options.model,
        options.drafter,
        path.name,
        tuple(found["off"]),
        tuple(found[options.drafter]),
        median(drafting_s) / median(off_s),
        median(started) / median(started_off),
        sign_test(*compare(drafting_s, off_s)),
    )
    report = write_report(results)
    (options.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    (options.out / "report.md").write_text(report, encoding="utf-8")
    print(report)
    return 0


def write_report(results: TtftResults) -> str:
    """Markdown: both medians and their ratios."""
    rows = []
    for name, starts in (("off", results.off), (results.drafter, results.drafting)):
        times = sorted(start.ttft_s for start in starts)
        first = median(start.first_token_s for start in starts)
        rows.append(f"| {name} | {median(times):.3f} | {times[0]:.3f} to {times[-1]:.3f} | {first:.2f} |")
    return "\n".join(
        [
            "# TTFT without a profile",
            "",
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


def _start(model: str, drafter: str, prompt: str) -> Start:
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
    return Start(ttft_s, first_s)


def _folder(reference: str) -> str:
    """The model for processes whose home is another one: the starter is unpacked once."""
    from core.models.runtime.runtime import prepare

    prepare()
    from core.models.starter import STARTER, ensure_starter

    return str(ensure_starter()) if reference == STARTER else absolute_reference(reference)

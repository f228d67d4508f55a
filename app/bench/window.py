"""`draftlight bench window`: measures the window and compares the figures with its budget.

Each part runs in a new process that opens the real window as a person's start would; the pairs of the cost
(see `measures`) share one process. Run it on a quiet machine: other work raises the 99th percentiles first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.launch.display import display_problem, go_offscreen_without_display
from core.settings.window import BENCH_PARTS
from core.system.children import CHILD_FOLDER, absolute_reference, child_environment, module_command
from core.system.prepared import prepared

if TYPE_CHECKING:
    from app.bench.measures import Scenes
    from app.shell.window import MainWindow

_STARTED = "DRAFTLIGHT_BENCH_STARTED_S"
_TIMEOUT_S = 280.0
_STARTS = 5


def run_bench(
    out: str, model: str = "starter", parts: Sequence[str] = BENCH_PARTS, pairs: int = 9, tokens: int = 192
) -> int:
    """Measure `parts` and write `results.json` and `report.md` to `out`. 0, or 1 if a part failed."""
    go_offscreen_without_display(os.environ, sys.platform)
    if problem := display_problem(os.environ, sys.platform):
        print(problem, file=sys.stderr)
        return 1
    from app.bench.measures import TIMEOUT_S, Cost, Scenes, WindowResults, report

    model = absolute_reference(model)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)  # an error now, not after the measurements
    scenes, cost = None, None
    try:
        starts_s = _since_start("start") if "start" in parts else ()
        ready_s = _since_start("ready", model) if "ready" in parts else ()
        if "scenes" in parts:
            scenes = msgspec.json.decode(_child("scenes"), type=prepared(Scenes))
        if "cost" in parts:
            # Two runs a pair, one before all, and the model's loading.
            timeout_s = TIMEOUT_S * (2 + pairs)
            line = _child("cost", None, model, str(pairs), str(tokens), timeout_s=timeout_s)
            cost = msgspec.json.decode(line, type=prepared(Cost))
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", None) or ""
        print(f"draftlight: a part of the bench failed: {error}\n{said}", file=sys.stderr)
        return 1
    results = WindowResults(starts_s, ready_s, scenes, cost)
    (folder / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    text = report(results)
    (folder / "report.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _since_start(part: str, *arguments: str) -> tuple[float, ...]:
    """Measures the seconds from the start of a process to its first painting, or to a loaded model.

    A first start is not counted: it compiles and reads what later starts find cached.
    """
    with _bytecode_kept() as more:
        took = [
            msgspec.json.decode(
                _child(part, more | {_STARTED: repr(time.monotonic())}, *arguments), type=float
            )
            for _ in range(1 + _STARTS)
        ]
    return tuple(took[1:])


@contextmanager
def _bytecode_kept() -> Iterator[dict[str, str]]:
    """Returns an environment in which Python keeps compiled modules while the block lasts.

    With `PYTHONDONTWRITEBYTECODE` every start would compile the whole window again: 0.4 of its 1.4 s of
    processor time, which no installed Draftlight needs.
    """
    if not sys.dont_write_bytecode:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="draftlight-bench-") as folder:
        yield {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}


def _child(
    part: str, more: dict[str, str] | None = None, *arguments: str, timeout_s: float = _TIMEOUT_S
) -> bytes:
    """The last line that the child process says. Raises `SubprocessError`."""
    command = module_command("app.bench.window", "--part", part, *arguments)
    done = subprocess.run(
        command,
        env=child_environment(**(more or {})),
        cwd=CHILD_FOLDER,
        capture_output=True,
        check=True,
        timeout=timeout_s,
    )
    return done.stdout.splitlines()[-1]


# ---- in the child


def _run_part(part: str, arguments: Sequence[str]) -> int:
    from app.launch.opening import open_window

    async def scenario(window: MainWindow) -> int:
        if part in ("start", "ready"):
            window.repaint()
            if part == "ready":
                from app.launch.scenario import Deadline

                await Deadline(_TIMEOUT_S).until_ready(window)
            _say(time.monotonic() - float(os.environ[_STARTED]))
        elif part == "scenes":
            from app.bench.measures import play

            _say(await _outside_of_tasks(lambda: play(window)))
        else:
            from app.bench.measures import measure

            _say(await measure(window, int(arguments[1]), int(arguments[2])))
        return 0

    # No worker that loads a model at the same time: `start` and `scenes` measure the window alone.
    command = [sys.executable, "-c", "input()"] if part in ("start", "scenes") else None
    return open_window(arguments[0] if arguments else "starter", scenario, command=command)


async def _outside_of_tasks(act: Callable[[], Scenes]) -> Scenes:
    """`act` lets the window live, and no task may run inside another task's step."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Scenes] = loop.create_future()

    def go() -> None:
        try:
            done.set_result(act())
        except Exception as error:
            done.set_exception(error)

    loop.call_soon(go)
    return await done


def _say(result: object) -> None:
    print(msgspec.json.encode(result).decode(), flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m app.bench.window --out DIR`."""
    parser = argparse.ArgumentParser(prog="python -m app.bench.window")
    parser.add_argument("--out")
    parser.add_argument("--model", default="starter")
    parser.add_argument("--parts", default=",".join(BENCH_PARTS))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--part", nargs="+")
    options = parser.parse_args(argv)
    if options.part:
        return _run_part(options.part[0], options.part[1:])
    if not options.out:
        parser.error("--out DIR says where the results go")
    return run_bench(options.out, options.model, options.parts.split(","), options.pairs)


if __name__ == "__main__":
    sys.exit(main())

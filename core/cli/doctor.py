"""`draftlight doctor`: checks of the installation and its speed.

Each check gives findings of one line with a hint if something should be done. `broken` means that
Draftlight cannot answer; `note` marks slow or missing optional parts. A check that fails is itself a
finding and does not stop the others. Exit status 1 if anything is broken.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from core.cli.arguments import add_quiet, number, read_config
from core.cli.report import MINUTES, run_report
from core.cli.window import find_window_part
from core.errors import DraftlightError, reason_of
from core.system.terminal import ProgressLine

Health = Literal["ok", "note", "broken"]
_MARKS: dict[Health, str] = {"ok": "ok    ", "note": "note  ", "broken": "BROKEN"}
_PACKAGES = ("mlx", "mlx-lm", "PySide6-Essentials", "qasync", "msgspec", "numpy", "safetensors")
# OpenBLAS on two cores reaches 110 and more, the reference BLAS 4.
_SLOW_GFLOPS = 20.0
# Enough for the starter, tables and the beginning of a download.
_LOW_DISK_BYTES = 1_000_000_000


class Finding(Struct, frozen=True):
    """The result of a check. `hint` says what to do; empty if nothing."""

    subject: str
    health: Health
    text: str
    hint: str = ""


Check = Callable[[], Iterable[Finding]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--report", metavar="FILE", help="also measure this machine, and write a Markdown file about it"
    )
    parser.add_argument(
        "--minutes", type=number(1, 120), default=MINUTES, metavar="N",
        help=f"time for --report; what does not fit is skipped and named (default {MINUTES})",
    )  # fmt: skip
    parser.add_argument(
        "--model", dest="measured", metavar="MODEL",
        help="the model that --report measures (default: that of config.toml, else starter)",
    )  # fmt: skip
    # Child processes of the report, and of its trial.
    parser.add_argument("--try-buffers", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--time-buffers", metavar="MODEL", help=argparse.SUPPRESS)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run all checks, including the window's, or measure for a report."""
    if options.time_buffers:
        from core.machine.buffers import time_limits

        print(msgspec.json.encode(time_limits(options.time_buffers)).decode())
        return 0
    if options.try_buffers:
        return _try_buffers(options.try_buffers)
    if not options.report:
        return report(find_window_part("doctor"))
    with ProgressLine(options.quiet) as line:
        say = partial(line.say, now=True)
        model = options.measured or read_config()[0] or "starter"
        made = run_report(options.report, model, options.minutes, say)
    for text in (*made.anomalies, *(f"Skipped: {each}" for each in made.skipped)):
        print(text)
    print(f"The report is in {options.report}.")
    return 0


def _try_buffers(model: str) -> int:
    from core.machine.buffers import try_limits
    from core.models.runtime import prepare

    prepare()
    from core.models import memory

    if not memory.on_gpu():
        print("Not tried: only Metal has command buffers.")
        return 0
    for limits, times in try_limits(model):
        name = f"{limits.operations or 'MLX’s'} operations, {limits.megabytes or 'MLX’s'} MB"
        took = f"chunk of 512 tokens {times.prefill_s:.3f} s, plain step {1000 * times.step_s:.2f} ms"
        print(f"{name}: {f'failed, {times.fault}' if times.fault else took}", flush=True)
    return 0


def findings(window: Check | None = None) -> Iterator[Finding]:
    """Runs the checks; their findings in order. `window` is the window's check, if installed."""
    checks: list[tuple[str, Check]] = [
        ("Draftlight", _program),
        ("Packages", _packages),
        ("Config", _config),
        ("Compute", _compute),
        ("Exactness", _exactness),
        ("Starter model", _starter),
        ("Encoder", _encoder),
        ("Folders", _folders),
        ("Tables", _tables),
    ]
    checks.append(("Window", window or _no_window))
    return (finding for subject, check in checks for finding in _checked(subject, check))


def report(window: Check | None = None) -> int:
    """Print all findings and return the exit status."""
    found = list(findings(window))
    width = max(len(finding.subject) for finding in found)
    for finding in found:
        print(f"{_MARKS[finding.health]}  {finding.subject:{width}}  {finding.text}")
        if finding.hint:
            print(f"{'':{width + 10}}{finding.hint}")
    broken = sum(finding.health == "broken" for finding in found)
    print(f"\n{broken} of {len(found)} broken." if broken else "\nAll that is needed is there.")
    return 1 if broken else 0


def _checked(subject: str, check: Check) -> Iterator[Finding]:
    """The findings of a check; its failure is a finding too."""
    try:
        yield from check()
    except DraftlightError as error:
        yield Finding(subject, "broken", error.message, error.hint)
    except Exception as error:
        yield Finding(subject, "broken", f"The check failed: {reason_of(error)}.")


def _program() -> Iterator[Finding]:
    version = importlib.metadata.version("draftlight")
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield Finding("Draftlight", "ok", f"{version}, Python {platform.python_version()}, {system}")


def _packages() -> Iterator[Finding]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding("Packages", "broken", f"{name} is not installed.", "Run “make setup”.")
    yield Finding("Packages", "ok", ", ".join(found))


def _config() -> Iterator[Finding]:
    model, _ = read_config()
    yield Finding("Config", "ok", f"commands use {model}" if model else "commands use the starter model")


def _compute() -> Iterator[Finding]:
    from core.models.runtime import prepare

    blas = prepare()
    import mlx.core as mx

    from core.models import memory
    from core.models.blas import threads_at_start

    if os.environ.get("MLX_METAL_FAST_SYNCH", "0") != "0":
        text = "MLX_METAL_FAST_SYNCH is set, with which MLX can wait for ever (mlx#3830)."
        yield Finding("Device", "note", text, "Remove it from your environment.")
    limit_gb = memory.limit_bytes() / 1e9
    if mx.default_device() == mx.gpu:
        yield Finding("Device", "ok", f"Metal, {limit_gb:.1f} GB for models")
    else:
        hint = "Draftlight is made for Macs with Apple silicon." if sys.platform != "darwin" else ""
        yield Finding("Device", "note", f"CPU, no Metal; {limit_gb:.1f} GB for models", hint)
    speed = _matmul_gflops()
    on_metal = mx.default_device() == mx.gpu
    hint = ""
    if not on_metal and speed < _SLOW_GFLOPS:
        fast = blas.startswith("OpenBLAS")
        hint = "Something else is using the processor." if fast else "Answers are slow without OpenBLAS."
    count = 0 if on_metal else threads_at_start()
    made_with = "Metal" if on_metal else f"{blas} ({count} threads)" if count else blas
    text = f"{speed:,.0f} GFLOP/s in float32, with {made_with}"
    yield Finding("Matrix product", "note" if hint else "ok", text, hint)


def _exactness() -> Iterator[Finding]:
    """The exactness profiles of the models compared on this machine."""
    from core.models.runtime import prepare

    prepare()
    from core.machine.exactness import PROFILES

    profiles = PROFILES.all()
    if not profiles:
        hint = "“draftlight models profile” compares them; answers with “exact” draft nothing before."
        yield Finding("Exactness", "ok", "no model's block widths were compared yet", hint)
    for profile in profiles:
        yield Finding("Exactness", "ok", f"{profile.model}: {profile.summary}")


def _matmul_gflops(size: int = 768, rounds: int = 5) -> float:
    """Best of `rounds` products of two float32 [size, size] matrices."""
    import mlx.core as mx

    left, right = mx.random.normal((size, size)), mx.random.normal((size, size))
    mx.eval(left, right)
    best_s = float("inf")
    for _ in range(rounds):
        started_s = time.perf_counter()
        mx.eval(left @ right)
        best_s = min(best_s, time.perf_counter() - started_s)
    return 2 * size**3 / best_s / 1e9


def _starter() -> Iterator[Finding]:
    from core.folders.starter import NAME, damage, packed_file, starter_folder

    subject = "Starter model"
    try:
        packed_file()
    except DraftlightError as error:
        yield Finding(subject, "note", error.message, f"{error.hint} Other models work without it.")
        return
    folder = starter_folder()
    if not folder.exists():
        yield Finding(subject, "ok", f"{NAME}, packed; the first start unpacks it")
    elif problem := damage(folder):
        yield Finding(subject, "note", f"{NAME}: {problem}.", "The next start unpacks it again.")
    else:
        yield Finding(subject, "ok", f"{NAME}, unpacked and complete")


def _encoder() -> Iterator[Finding]:
    """Reads the encoder's files completely and compares them with the shipped ones."""
    from core.models.runtime import prepare

    prepare()
    from core.encoder.encoder import NAME, check_files

    subject = "Encoder"
    try:
        check_files()
    except DraftlightError as error:
        yield Finding(subject, "note", error.message, error.hint)
        return
    yield Finding(subject, "ok", f"{NAME}, as shipped")


def _folders() -> Iterator[Finding]:
    from core.system.paths import cache_dir, data_dir

    for subject, folder in (("Data folder", data_dir()), ("Cache folder", cache_dir())):
        existing = _nearest(folder)
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            yield Finding(
                subject,
                "broken",
                f"{folder} cannot be written to: {error.strerror}.",
                "Make it writable, or set DRAFTLIGHT_HOME to a folder that is.",
            )
            continue
        free_bytes = shutil.disk_usage(existing).free
        low = free_bytes < _LOW_DISK_BYTES
        yield Finding(
            subject,
            "note" if low else "ok",
            f"{folder}, {free_bytes / 1e9:,.1f} GB free",
            "Models and tables may not fit." if low else "",
        )


def _nearest(folder: Path) -> Path:
    """The folder, or its nearest existing ancestor."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _tables() -> Iterator[Finding]:
    """Reads every saved table completely, including its checksum, and changes nothing."""
    from core.system.paths import tables_dir
    from core.tables.files import TableFolder

    folder = TableFolder(tables_dir())
    keys = folder.keys()
    size_bytes = 0
    for key in keys:
        _, found = folder.read(key)
        size_bytes += found.size_bytes
        if found.notes:
            yield Finding("Tables", "note", " ".join(found.notes))
    text = f"{len(keys)} in {tables_dir()}, {size_bytes / 1e6:.1f} MB" if keys else "none saved yet"
    yield Finding("Tables", "ok", text)


def _no_window() -> Iterator[Finding]:
    yield Finding("Window", "note", "This installation has no window.", "Install Draftlight with the window.")

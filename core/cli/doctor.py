"""`draftlight doctor`: what is installed, what is fast, what is not and why.

A finding is one line: what was looked at, how it is, and what to do if it is not well. Only what
keeps Draftlight from answering is `broken`; slow or absent things that it can do without are
`note`. Each look is on its own: one that fails is a finding, never the end of the others.
Exit status 1 if anything is broken.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from core.cli.window import find_window_part
from core.errors import DraftlightError

Health = Literal["ok", "note", "broken"]
_MARKS: dict[Health, str] = {"ok": "ok    ", "note": "note  ", "broken": "BROKEN"}
_PACKAGES = ("mlx", "mlx-lm", "PySide6-Essentials", "qasync", "msgspec", "numpy", "safetensors")
# OpenBLAS on two cores gives 110 and more here, the reference BLAS 4.
_SLOW_GFLOPS = 20.0
# How long, and from how much on, other programs are looked at.
_LOOK_S = 0.3
_BUSY_CORES = 0.5
# The starter's folder, a table of every size, and room for a download to begin.
_LOW_DISK_BYTES = 1_000_000_000
_MOST_TABLE_BYTES = 1 << 30


class Finding(Struct, frozen=True):
    """`subject` is what was looked at, `text` how it is, `hint` what to do; empty if nothing."""

    subject: str
    health: Health
    text: str
    hint: str = ""


Look = Callable[[], Iterable[Finding]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes nothing."""
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look at everything, the window's needs too."""
    return report(find_window_part("doctor"))


def report(window: Look | None = None) -> int:
    """Print all findings. `window` looks at what the window needs, where there is one."""
    looks: list[tuple[str, Look]] = [
        ("Draftlight", _program),
        ("Packages", _packages),
        ("Compute", _compute),
        ("Exactness", _exactness),
        ("Starter model", _starter),
        ("Encoder", _encoder),
        ("Folders", _folders),
        ("Tables", _tables),
    ]
    looks.append(("Window", window or _no_window))
    findings = [finding for subject, look in looks for finding in _looked(subject, look)]
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        print(f"{_MARKS[finding.health]}  {finding.subject:{width}}  {finding.text}")
        if finding.hint:
            print(f"{'':{width + 10}}{finding.hint}")
    broken = sum(finding.health == "broken" for finding in findings)
    print(f"\n{broken} of {len(findings)} broken." if broken else "\nAll that is needed is there.")
    return 1 if broken else 0


def _looked(subject: str, look: Look) -> Iterator[Finding]:
    """What `look` finds; that it failed is found too."""
    try:
        yield from look()
    except DraftlightError as error:
        yield Finding(subject, "broken", error.message, error.hint)
    except Exception as error:
        yield Finding(subject, "broken", f"Looking at it failed: {type(error).__name__}: {error}.")


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


def _compute() -> Iterator[Finding]:
    from core.models.runtime.runtime import prepare

    blas = prepare()
    import mlx.core as mx

    from core.models.runtime import memory

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
    made_with = "Metal" if on_metal else blas
    text = f"{speed:,.0f} GFLOP/s in float32, with {made_with}"
    yield Finding("Matrix product", "note" if hint else "ok", text, hint)
    if not on_metal:
        yield from _threads()


def _threads() -> Iterator[Finding]:
    """How many threads answers are computed with here, and why."""
    from core.models.runtime import blas
    from core.models.runtime.blas_threads import ProcessorUse, usable_cores

    subject, most = "Threads", blas.threads_at_start()
    if why := blas.why_threads_are_fixed():
        if most:
            yield Finding(subject, "ok", f"always {most}: {why}")
        return
    use = ProcessorUse()
    time.sleep(_LOOK_S)
    others = use.others()
    if others is None:
        yield Finding(subject, "note", f"always {most}: what other programs use is not known")
        return
    text = f"{most}, and fewer while other programs keep cores busy: now {others:.1f} of {usable_cores()}"
    fewer = others >= _BUSY_CORES
    yield Finding(subject, "note" if fewer else "ok", text, "Answers are slower meanwhile." if fewer else "")


def _exactness() -> Iterator[Finding]:
    """What “exact” promises for the models that were compared, and on how many rows that rests."""
    from core.models.runtime.runtime import prepare

    prepare()
    from core.decoding.probes.exactness import saved_profiles

    profiles = saved_profiles()
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
    from core.models.starter import NAME, damage, packed_file, starter_folder

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
        yield Finding(subject, "ok", f"{NAME}, unpacked and whole")


def _encoder() -> Iterator[Finding]:
    """Its files are read whole and compared with what ships."""
    from core.models.runtime.runtime import prepare

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
        there = _nearest(folder)
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            yield Finding(
                subject,
                "broken",
                f"{folder} cannot be written to: {error.strerror}.",
                "Make it writable, or set DRAFTLIGHT_HOME to a folder that is.",
            )
            continue
        free_bytes = shutil.disk_usage(there).free
        low = free_bytes < _LOW_DISK_BYTES
        yield Finding(
            subject,
            "note" if low else "ok",
            f"{folder}, {free_bytes / 1e9:,.1f} GB free",
            "Models and tables may not fit." if low else "",
        )


def _nearest(folder: Path) -> Path:
    """`folder`, or the nearest folder above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _tables() -> Iterator[Finding]:
    """Every saved table is read whole, checksum and all, and left where it is."""
    from core.system.paths import tables_dir
    from core.tables.container import InvalidFileError, read_file
    from core.tables.folder import TableFolder
    from core.tables.table_file import decode_table

    folder = TableFolder(tables_dir())
    keys = folder.keys() if tables_dir().is_dir() else []
    size_bytes = 0
    for key in keys:
        path = tables_dir() / key.file
        try:
            content = read_file(path, _MOST_TABLE_BYTES)
            size_bytes += len(content)
            decode_table(content)
        except (InvalidFileError, OSError) as error:
            yield Finding(
                "Tables",
                "note",
                f"{path.name} cannot be used: {error}.",
                "It will be set aside, never loaded.",
            )
    text = f"{len(keys)} in {tables_dir()}, {size_bytes / 1e6:.1f} MB" if keys else "none saved yet"
    yield Finding("Tables", "ok", text)


def _no_window() -> Iterator[Finding]:
    yield Finding(
        "Window", "note", "This installation names no window to look at.", "Install the whole of Draftlight."
    )

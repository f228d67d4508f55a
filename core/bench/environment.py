"""What a measurement ran on: recorded with every result, so that figures can be compared."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from msgspec import Struct

from core.models.runtime.blas import threads_at_start, threads_variable


class Environment(Struct, frozen=True):
    """The one record of all benches. `dtype` is what the model computes in, empty without a model.

    `commit` is empty outside a checkout; a `+` marks uncommitted changes.

    `blas` says with how many threads, too, which are all there are unless the user set the number.
    `speculation`: what was found safe for the model, in words; empty where nothing was tried.
    """

    system: str
    machine: str
    processor: str
    cores: int
    python: str
    draftlight: str
    mlx: str
    mlx_lm: str
    blas: str
    commit: str
    dtype: str = ""
    speculation: str = ""

    @property
    def line(self) -> str:
        """All of it in one line, for reports."""
        return (
            f"{self.system} {self.machine}, {self.processor}, {self.cores} cores; Python {self.python},"
            f" mlx {self.mlx}, mlx-lm {self.mlx_lm}, {self.blas}"
            f"{f', {self.dtype}' if self.dtype else ''}{f', {self.speculation}' if self.speculation else ''};"
            f" Draftlight {self.draftlight} {self.commit}"
        )


def describe(blas: str = "", dtype: str = "", speculation: str = "") -> Environment:
    """The environment of this process; `blas` is what `prepare` gave, where there is a model."""
    version = importlib.metadata.version
    return Environment(
        platform.system(),
        platform.machine(),
        _processor(),
        os.cpu_count() or 0,
        platform.python_version(),
        version("draftlight"),
        version("mlx"),
        version("mlx-lm"),
        blas + _threads() if blas else "no model",
        _commit(),
        dtype,
        speculation,
    )


def _threads() -> str:
    count, variable = threads_at_start(), threads_variable()
    return f", {count} threads{f' ({variable} is set)' if variable else ''}" if count else ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return ""

"""OpenBLAS under MLX's CPU build on Linux: 4 GFLOP/s of float32 matmul become hundreds.

MLX's Linux wheel links the reference BLAS. Symbols of a library that was loaded globally first
win, so `load_openblas()` must run before the first `import mlx.core` of the process; every
entry point calls it through `core.models.runtime`. On macOS there is nothing to do.

The OpenBLAS wheel needs `libgfortran.so.5`. If the system has none, the copy in MLX's own wheel is
used; its library name was changed when that wheel was made, so a copy with the plain name is loaded
from memory, which needs no folder that can be written to. Delete this when the OpenBLAS wheel brings
its own (cmeel-openblas 0.3.29 does not) or MLX links a fast BLAS.

The wheel is built for one processor, that of the machine it was made on: 0.3.29 needs AVX2, 0.3.31
AVX-512, and a processor without it ends the process at the first matrix. So the version is pinned
to the one that runs nearly everywhere, and the library is asked what it was built for before it is
used; Debian's chooses at run time.

How many threads it uses can be changed while MLX computes: a product reads the number once, when it
begins, and a smaller one only leaves threads asleep. Sums are cut up differently then: over 324
positions of text SmolLM2's logits (float32) differed by at most 8e-5 between one thread and two, and
no choice was another.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.errors import InternalError, MissingLibraryError

_SONAME = b"libgfortran.so.5"
# Variables that OpenBLAS reads when it is loaded.
_THREADS_OF_THE_USER = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_PTHREADS = 1  # `openblas_get_parallel`: 0 is none, 2 is OpenMP, which counts threads for each thread
# By OpenBLAS's name of the processor it was built for; anything else of today has AVX2 at most.
_NEEDS = {"SKYLAKEX": "avx512f", "COOPERLAKE": "avx512f", "SAPPHIRERAPIDS": "avx512f"}


def load_openblas() -> str:
    """Loads OpenBLAS for the whole process; returns the name of the BLAS that MLX will use.

    Idempotent. Raises `MissingLibraryError` on Linux if no OpenBLAS can be loaded; macOS has Accelerate.
    """
    if platform.system() != "Linux":
        return "Accelerate"
    if "mlx.core" in sys.modules and not _loaded:
        return "reference BLAS (OpenBLAS was not loaded before MLX)"
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0].name


def uses_slow_blas() -> bool:
    """Whether MLX was loaded without OpenBLAS on a system where it needs it."""
    return sys.platform == "linux" and "mlx.core" in sys.modules and not _loaded


def threads() -> int:
    """Number of threads that OpenBLAS uses now; 0 if MLX uses another library."""
    return _loaded[0].library.openblas_get_num_threads() if _loaded else 0


def threads_at_start() -> int:
    """Number of threads at load: the number of cores, unless an environment variable sets it."""
    return _loaded[0].threads if _loaded else 0


def set_threads(count: int) -> None:
    """Uses `count` threads from the next product on, at most those at load."""
    if not 1 <= count <= threads_at_start():
        raise InternalError(f"OpenBLAS cannot use {count} threads; 1 to {threads_at_start()} are possible.")
    _loaded[0].library.openblas_set_num_threads(count)


def threads_variable() -> str:
    """The environment variable that sets the number of threads; empty if none is set."""
    return next((name for name in _THREADS_OF_THE_USER if os.environ.get(name)), "")


def why_threads_are_fixed() -> str:
    """Why the number of threads must not change; empty if it may."""
    if not _loaded:
        return "MLX does not use OpenBLAS here"
    if variable := threads_variable():
        return f"{variable} is set"
    library = _loaded[0].library
    if threads_at_start() < 2:
        return "there is only one core"
    if library.openblas_get_parallel() != _PTHREADS:
        return "this OpenBLAS does not run its threads itself"
    if _address(ctypes.CDLL(None).cblas_sgemm) != _address(library.cblas_sgemm):
        return "another BLAS was loaded before OpenBLAS"
    return ""


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


class _Loaded(Struct, frozen=True):
    """The loaded library. `threads`: number of threads at load."""

    name: str
    library: ctypes.CDLL
    threads: int


_loaded: list[_Loaded] = []


def _load() -> _Loaded:
    bundled = _bundled("cmeel-openblas", "libopenblas.so.0")
    problems = []
    if bundled is not None:
        try:
            return _use(bundled, importlib.metadata.version("cmeel-openblas"))
        except OSError as error:
            problems.append(str(error))
        fortran = _bundled("mlx-cpu", "libgfortran")
        if fortran is not None:
            try:
                _load_gfortran(fortran)
                return _use(bundled, importlib.metadata.version("cmeel-openblas"))
            except OSError as error:
                problems.append(str(error))
    try:
        return _use(Path("libopenblas.so.0"), "system")
    except OSError as error:
        problems.append(str(error))
    raise MissingLibraryError(
        f"No OpenBLAS could be loaded, and without it MLX is fifty times slower ({'; '.join(problems)}).",
        "On Debian or Ubuntu: apt-get install libopenblas0-pthread",
    )


def _use(path: Path, version: str) -> _Loaded:
    """Loads OpenBLAS with global symbols. Raises OSError if that fails or if the CPU does not support it."""
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    library.openblas_get_config.restype = library.openblas_get_corename.restype = ctypes.c_char_p
    if b"DYNAMIC_ARCH" not in library.openblas_get_config():
        core = library.openblas_get_corename().decode()
        lacking = missing_instructions(core, _processor_flags())
        if lacking:
            raise OSError(f"{path.name} is built for {core} and this processor has no {lacking}")
    _global(path)
    return _Loaded(f"OpenBLAS ({version})", library, library.openblas_get_num_threads())


def missing_instructions(core: str, flags: frozenset[str]) -> str:
    """Instruction sets that an OpenBLAS built for `core` needs and a CPU with these flags lacks; empty if
    none.
    """
    needs = _NEEDS.get(core.upper(), "avx2")
    return "" if needs in flags else needs


def _processor_flags() -> frozenset[str]:
    """The processor's flags in the kernel's names; all required ones if unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "avx2 avx512f")
    return frozenset(flags.split())


def _global(path: Path) -> None:
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _bundled(distribution: str, stem: str) -> Path | None:
    try:
        files = importlib.metadata.distribution(distribution).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name.startswith(stem)]
    return min(found, key=lambda path: len(path.name), default=None)


def _load_gfortran(source: Path) -> None:
    """Loads a copy of `source` under the library's plain name. Raises OSError."""
    if sys.platform == "linux":
        for quadmath in source.parent.glob("libquadmath*"):
            _global(quadmath)
        mangled = source.name.encode() + b"\0"
        plain = _SONAME + b"\0" * (len(mangled) - len(_SONAME))
        descriptor = os.memfd_create(_SONAME.decode())
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(source.read_bytes().replace(mangled, plain))
            _global(Path(f"/proc/self/fd/{descriptor}"))
        finally:
            os.close(descriptor)  # the library remains mapped


# ---- number of threads

# A matrix product is divided into equal parts, one per thread, and ends with the slowest part. A thread that
# shares its core with another program delays all others, so two threads on two cores can be slower than one.
# `ProcessorUse` reads the kernel's counters, `ThreadChoice` decides (pure), `BlasThreads` applies the
# decision. The number of threads is a property of the process, so only one `BlasThreads` may change it at a
# time. Nothing is changed if the user set the number, or on macOS, where MLX uses Metal.

_STAT = Path("/proc/stat")
# Columns of a `cpu` line: user, nice, system, idle, iowait, irq, softirq, steal. Stolen time counts as busy.
_BUSY = (0, 2, 5, 6, 7)
_NICE = 1
# The kernel counts in hundredths of a second. Longer intervals than the second value are out of date.
_SAMPLE_EVERY_S = 0.3
_STALE_S = 5.0
# A core counts as used by others from a half on, and as free below a third.
_TAKEN = 0.5
_FREE = 0.3
# Steps measured with a new number of threads; the first may have begun with the old number.
_TRIAL_STEPS = 4
_MIN_STEPS_BEFORE = 2
# Load samples to wait before a rejected number is tried again; doubled after each rejection.
_FIRST_HOLD = 8
_LONGEST_HOLD = 128


class ProcessorSample(Struct, frozen=True):
    """Seconds: `time.monotonic`, busy time of all usable cores, and processor time of this process."""

    wall_s: float
    busy_s: float
    own_s: float


class ProcessorUse:
    """Number of cores that other programs keep busy, from the kernel's counters of the usable cores.

    Programs of lower priority than this process are left out, because they yield to it. Linux only.
    """

    def __init__(self, read: Callable[[], ProcessorSample | None] | None = None) -> None:
        self._read = read or read_use
        self._last = self._read()

    @property
    def age_s(self) -> float:
        """Seconds since the last sample; 0 without one."""
        return time.monotonic() - self._last.wall_s if self._last else 0.0

    def others(self) -> float | None:
        """Mean number of cores that others used since the last call; None if unknown."""
        last, now = self._last, self._read()
        self._last = now
        if last is None or now is None or now.wall_s <= last.wall_s:
            return None
        own_s = now.own_s - last.own_s
        return max(0.0, (now.busy_s - last.busy_s - own_s) / (now.wall_s - last.wall_s))


def usable_cores() -> int:
    """Number of cores that this process may run on."""
    return len(_usable_core_numbers()) or os.cpu_count() or 1


def _usable_core_numbers() -> set[int]:
    """Cores that this process may run on; empty where the system has no such restriction."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return affinity(0) if affinity else set()


def read_use() -> ProcessorSample | None:
    """Current counts; None on systems without /proc/stat."""
    try:
        lines = _STAT.read_text().splitlines()
    except OSError:
        return None
    busy_s = busy_ticks(lines, _usable_core_numbers(), counts_nice=os.nice(0) > 0)
    return ProcessorSample(time.monotonic(), busy_s / os.sysconf("SC_CLK_TCK"), time.process_time())


def busy_ticks(lines: list[str], cores: set[int], *, counts_nice: bool) -> int:
    """Busy clock ticks of `cores`, from the lines of /proc/stat."""
    names = {f"cpu{core}" for core in cores}
    columns = (*_BUSY, _NICE) if counts_nice else _BUSY
    ticks = 0
    for line in lines:
        name, *counts = line.split()
        if name in names:
            ticks += sum(int(counts[column]) for column in columns if column < len(counts))
    return ticks


class ThreadChoice:
    """State machine: `load` and `step` are its inputs, `threads` (1 to `most`) its output. Pure.

    The load of other programs says when to try fewer threads. Times of decode steps decide whether that
    number stays; it stays only if steps are faster. A rejected number is tried again after an interval that
    doubles each time. While no tokens are decoded (prefill), the load decides alone. Threads are added back
    by the load alone, because a few noisy steps must not keep free cores unused.
    """

    def __init__(self, cores: int, most: int) -> None:
        self._cores = cores
        self._most = most
        self.threads = most
        self._others = 0.0
        self._wanted = most
        self._before: list[float] = []
        self._tried: list[float] = []
        self._tried_from = 0
        self._hold = 0
        self._next_hold = _FIRST_HOLD

    @property
    def others(self) -> float:
        """Cores used by others at the last `load`."""
        return self._others

    def begin(self) -> None:
        """Start another answer; its steps are not compared with earlier ones."""
        self._tried_from, self._wanted = 0, self.threads

    def load(self, others: float) -> None:
        """Other programs use `others` cores. A change takes effect when two samples in a row agree."""
        self._others = others
        wanted = self._fitting()
        if self._tried_from:
            if wanted <= self.threads:
                return
            self._tried_from = 0
        if self._hold:
            self._hold -= 1
            return
        if wanted == self.threads or wanted != self._wanted:
            self._wanted = wanted
            self._before = []
            return
        if wanted < self.threads and len(self._before) >= _MIN_STEPS_BEFORE:
            self._tried_from, self._tried = self.threads, []
        self.threads = wanted

    def step(self, plain_s: float) -> None:
        """A decode step ended; `plain_s` is its time scaled to a step of width 1."""
        if not self._tried_from:
            if self._wanted != self.threads:
                self._before.append(plain_s)
            return
        self._tried.append(plain_s)
        if len(self._tried) < _TRIAL_STEPS:
            return
        if statistics.median(self._tried[1:]) < statistics.median(self._before):
            self._next_hold = _FIRST_HOLD
        else:
            self.threads = self._wanted = self._tried_from
            self._hold = self._next_hold
            self._next_hold = min(2 * self._next_hold, _LONGEST_HOLD)
        self._tried_from = 0

    def _fitting(self) -> int:
        """Number of threads that have a core each; the current number if that is close."""
        others, now = self._others, self.threads
        if now + others > self._cores > others:
            # The cores are shared, so others would use more than they get now.
            others *= now / (self._cores - others)
        free = self._cores - others
        if now - free >= _TAKEN:
            return max(1, math.floor(free + _TAKEN))
        return max(now, min(self._most, math.floor(free + _FREE)))


class BlasThreads:
    """Applies `ThreadChoice` between forward passes. One per engine.

    Answers in `exact` are steady, that is, all threads are used throughout, because the
    exactness probes ran with all threads. `fast` makes no promise about bits, so the number may change.
    `held`: why all threads are always used; empty if they need not be.
    """

    def __init__(self, held: str = "") -> None:
        self.held = held
        self._fixed = why_threads_are_fixed()
        self._steady = ""
        self._most = threads_at_start()
        self._use = ProcessorUse()
        self._choice = ThreadChoice(usable_cores(), self._most)

    @property
    def why_steady(self) -> str:
        """Why the number of threads does not change; empty if it may."""
        return self._fixed or self.held or self._steady

    @property
    def words(self) -> str:
        """Number of threads in use and the reason; empty without OpenBLAS."""
        if not self._most:
            return ""
        why = self.why_steady or f"other programs use {self._choice.others:.1f} of {usable_cores()} cores"
        return f"{threads()} of {self._most}: {why}"

    def begin(self, *, steady: str = "") -> None:
        """Start an answer. `steady`: why all threads are used throughout; empty if they need not be."""
        self._steady = steady
        if self._fixed:
            return
        if self.why_steady:
            set_threads(self._most)
            return
        self._choice.begin()
        if self._use.age_s > _STALE_S:
            self._use.others()
        self.look()

    def idle(self, *, steady: str = "") -> None:
        """Start a piece of idle work. `steady` as for `begin`."""
        self._steady = steady
        if self.why_steady and not self._fixed:
            set_threads(self._most)
        self.look()

    def look(self) -> None:
        """Sample the load if it is time, and set the number of threads. Call between forward passes."""
        if self.why_steady:
            return
        if self._use.age_s >= _SAMPLE_EVERY_S:
            others = self._use.others()
            if others is not None:
                self._choice.load(others)
        set_threads(self._choice.threads)

    def step(self, plain_s: float) -> None:
        """A decode step ended; `plain_s` is its time scaled to a step of width 1."""
        if not self.why_steady:
            self._choice.step(plain_s)
            self.look()

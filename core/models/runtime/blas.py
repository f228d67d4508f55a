"""OpenBLAS under MLX's CPU build on Linux: 4 GFLOP/s of float32 matmul become hundreds.

MLX's Linux wheel links the reference BLAS. Symbols of a library that was loaded globally first
win, so `load_openblas()` must run before the first `import mlx.core` of the process; every
entry point calls it through `core.models.runtime.runtime`. On macOS there is nothing to do.

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
import os
import platform
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.errors import InternalError, MissingLibraryError

_SONAME = b"libgfortran.so.5"
# What OpenBLAS itself reads when it is loaded.
_THREADS_OF_THE_USER = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_PTHREADS = 1  # `openblas_get_parallel`: 0 is none, 2 is OpenMP, which counts threads for each thread
# By OpenBLAS's name of the processor it was built for; anything else of today has AVX2 at most.
_NEEDS = {"SKYLAKEX": "avx512f", "COOPERLAKE": "avx512f", "SAPPHIRERAPIDS": "avx512f"}


def load_openblas() -> str:
    """Load OpenBLAS for the whole process; returns the name of the BLAS that MLX will use.

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
    """Whether MLX was loaded and OpenBLAS, which it should use here, was not."""
    return sys.platform == "linux" and "mlx.core" in sys.modules and not _loaded


def threads() -> int:
    """How many threads OpenBLAS uses now; 0 where MLX uses another library."""
    return _loaded[0].library.openblas_get_num_threads() if _loaded else 0


def threads_at_start() -> int:
    """How many it used when it was loaded: as many as cores, unless the environment says otherwise."""
    return _loaded[0].threads if _loaded else 0


def set_threads(count: int) -> None:
    """Use `count` threads from the next product on; at most those of the start."""
    if not 1 <= count <= threads_at_start():
        raise InternalError(f"OpenBLAS cannot use {count} threads; 1 to {threads_at_start()} are possible.")
    _loaded[0].library.openblas_set_num_threads(count)


def threads_variable() -> str:
    """The variable by which the user set the number of threads; empty if that was not done."""
    return next((name for name in _THREADS_OF_THE_USER if os.environ.get(name)), "")


def why_threads_are_fixed() -> str:
    """Why the number of threads is not to be changed, in words; empty if it can be."""
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
    """`threads`: as many as it used at first."""

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
    """Load OpenBLAS for everyone. Raises OSError if it cannot be, or would not run on this processor."""
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
    """What an OpenBLAS built for `core` needs and a processor with these flags lacks, or nothing."""
    needs = _NEEDS.get(core.upper(), "avx2")
    return "" if needs in flags else needs


def _processor_flags() -> frozenset[str]:
    """As the kernel names them; all that is asked for if it does not say."""
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
    """Load a copy of `source` under the library's plain name. Raises OSError."""
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
            os.close(descriptor)  # what was loaded stays mapped

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
to the one that runs nearly everywhere, and the library reports its build target before it is
used; Debian's chooses at run time.

It uses as many threads as there are cores, or as OPENBLAS_NUM_THREADS says.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from msgspec import Struct

from core.errors import MissingLibraryError

_SONAME = b"libgfortran.so.5"
# Variables that OpenBLAS reads when it is loaded.
_THREADS_OF_THE_USER = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
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


def threads_at_start() -> int:
    """Number of threads: that of the cores, unless an environment variable sets it; 0 with another BLAS."""
    return _loaded[0].threads if _loaded else 0


def threads_variable() -> str:
    """The environment variable that sets the number of threads; empty if none is set."""
    return next((name for name in _THREADS_OF_THE_USER if os.environ.get(name)), "")


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

"""OpenBLAS under MLX's CPU build on Linux: 4 GFLOP/s of float32 matmul become hundreds.

MLX's Linux wheel links the reference BLAS. Symbols of a library that was loaded globally first
win, so `load_openblas()` must run before the first `import mlx.core` of the process; every
entry point calls it through `core.models.runtime`. On macOS there is nothing to do.

The wheel of OpenBLAS needs `libgfortran.so.5`. Where the system has none, the copy that MLX's
own wheel carries is used; its library name was changed when that wheel was made, so a copy with
the plain name is put into the cache directory once. Delete this when the OpenBLAS wheel brings
its own (cmeel-openblas 0.3.29 does not) or MLX links a fast BLAS.

The wheel is built for one processor, that of the machine it was made on: 0.3.29 needs AVX2, 0.3.31
AVX-512, and a processor without it ends the process at the first matrix. So the version is pinned
to the one that runs nearly everywhere, and the library is asked what it was built for before it is
used; Debian's chooses at run time.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import sys
import tempfile
from pathlib import Path

from core.errors import MissingLibraryError
from core.paths import cache_dir

_SONAME = b"libgfortran.so.5"
# By OpenBLAS's name of the processor it was built for; anything else of today has AVX2 at most.
_NEEDS = {"SKYLAKEX": "avx512f", "COOPERLAKE": "avx512f", "SAPPHIRERAPIDS": "avx512f"}


def load_openblas() -> str:
    """Load OpenBLAS for the whole process; returns what MLX will use, in words.

    Idempotent. Raises `MissingLibraryError` on Linux x86-64 if no OpenBLAS can be loaded;
    elsewhere MLX's own choice stands.
    """
    if sys.platform != "linux":
        return "Accelerate"
    if "mlx.core" in sys.modules and not _loaded:
        return "reference BLAS (OpenBLAS was not loaded before MLX)"
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0]


_loaded: list[str] = []


def _load() -> str:
    bundled = _bundled("cmeel-openblas", "libopenblas.so.0")
    problems = []
    if bundled is not None:
        try:
            _use(bundled)
            return f"OpenBLAS ({importlib.metadata.version('cmeel-openblas')})"
        except OSError as error:
            problems.append(str(error))
        fortran = _bundled("mlx-cpu", "libgfortran")
        if fortran is not None:
            try:
                _load_gfortran(fortran)
                _use(bundled)
                return f"OpenBLAS ({importlib.metadata.version('cmeel-openblas')})"
            except OSError as error:
                problems.append(str(error))
    try:
        _use(Path("libopenblas.so.0"))
        return "OpenBLAS (system)"
    except OSError as error:
        problems.append(str(error))
    raise MissingLibraryError(
        f"No OpenBLAS could be loaded, and without it MLX is fifty times slower ({'; '.join(problems)}).",
        "On Debian or Ubuntu: apt-get install libopenblas0-pthread",
    )


def _use(path: Path) -> None:
    """Load OpenBLAS for everyone. Raises OSError if it cannot be, or would not run on this processor."""
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_LOCAL)
    library.openblas_get_config.restype = library.openblas_get_corename.restype = ctypes.c_char_p
    if b"DYNAMIC_ARCH" not in library.openblas_get_config():
        core = library.openblas_get_corename().decode()
        lacking = missing_instructions(core, _processor_flags())
        if lacking:
            raise OSError(f"{path.name} is built for {core} and this processor has no {lacking}")
    _global(path)


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
    for quadmath in source.parent.glob("libquadmath*"):
        _global(quadmath)
    mangled = source.name.encode() + b"\0"
    content = source.read_bytes()
    plain = _SONAME + b"\0" * (len(mangled) - len(_SONAME))
    content = content.replace(mangled, plain)
    target = cache_dir() / "lib" / hashlib.sha256(content).hexdigest()[:16] / _SONAME.decode()
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, target)
    _global(target)

"""OpenBLAS under MLX's CPU build on Linux: 4 GFLOP/s of float32 matmul become hundreds.

MLX's Linux wheel links the reference BLAS. Symbols of a library that was loaded globally first
win, so `load_openblas()` must run before the first `import mlx.core` of the process; every
entry point calls it through `core.models.runtime`. On macOS there is nothing to do.

The wheel of OpenBLAS needs `libgfortran.so.5`. Where the system has none, the copy that MLX's
own wheel carries is used; its library name was changed when that wheel was made, so a copy with
the plain name is put into the cache directory once. Delete this when the OpenBLAS wheel brings
its own (cmeel-openblas 0.3.31 does not) or MLX links a fast BLAS.
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
            _global(bundled)
            return f"OpenBLAS ({importlib.metadata.version('cmeel-openblas')})"
        except OSError as error:
            problems.append(str(error))
        fortran = _bundled("mlx-cpu", "libgfortran")
        if fortran is not None:
            try:
                _load_gfortran(fortran)
                _global(bundled)
                return f"OpenBLAS ({importlib.metadata.version('cmeel-openblas')})"
            except OSError as error:
                problems.append(str(error))
    try:
        _global(Path("libopenblas.so.0"))
        return "OpenBLAS (system)"
    except OSError as error:
        problems.append(str(error))
    raise MissingLibraryError(
        f"No OpenBLAS could be loaded, and without it MLX is fifty times slower ({'; '.join(problems)}).",
        "On Debian or Ubuntu: apt-get install libopenblas0-pthread",
    )


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

"""Preparation of a process for MLX: call `prepare()` before the first import of mlx, in every entry point."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from core.errors import RequestError
from core.folders.quiet_hub import hush_hub
from core.models.blas import load_openblas, uses_slow_blas
from core.system.buffer_limits import mlx_environment
from core.system.files import load_json, save_json
from core.system.paths import cache_dir


class NotPreparedError(RequestError, code="not-prepared"):
    """MLX was imported before `prepare()` was called."""


def prepare() -> str:
    """Loads a fast BLAS, silences and speeds up the tokenizer library. Returns the name of the BLAS.

    Raises `MissingLibraryError` with the package to install.
    """
    # Without this the tokenizer library warns about forks.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    for name, value in mlx_environment().items():
        os.environ.setdefault(name, value)
    hush_hub()
    use_index()
    return load_openblas()


def check_prepared() -> None:
    """Raises `NotPreparedError` if MLX was loaded without the fast BLAS, which is many times slower."""
    if uses_slow_blas():
        raise NotPreparedError(
            "MLX was imported before its fast BLAS was loaded, which cannot be done afterwards.",
            "Call core.models.runtime.prepare() before core.engine.engine or mlx is imported, or use"
            " core.python.open_engine().",
        )


# ---- index of transformers' modules, cached between processes
#
# transformers 5 reads all 1,640 files of its models on import, twice: 1.2 of the 2.1 seconds that a worker
# needed to start. The result depends on the installed version only, so it is cached with marks of the
# files. In unexpected cases (another layout, a damaged file, a full disk) transformers reads its files as
# usual.
#
# Delete this when `import transformers` no longer reads the files of all models.


_MODULE = "transformers.utils.import_utils"
_FUNCTION = "define_import_structure"
# Names by module, grouped by the libraries that they need.
Structure = dict[frozenset[str], dict[str, set[str]]]


class Index(Struct, frozen=True):
    """Names found in transformers' files, and `marks` of the files' version."""

    marks: list[str]
    groups: list[tuple[frozenset[str], dict[str, set[str]]]]


def index_file() -> Path:
    """Path of the index of transformers' lazily imported files."""
    return cache_dir() / "transformers.json"


def use_index() -> None:
    """Installs the index in this process, unless transformers is already imported. Idempotent."""
    if _MODULE not in sys.modules and not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Import hook that runs once: the module that reads the files gets a function that uses the index, and
    does not find Pillow.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                reads = getattr(module, _FUNCTION, None)
                if reads is not None and module.__file__:
                    setattr(module, _FUNCTION, indexed(reads, Path(module.__file__).parents[1] / "models"))
                _hide_pillow(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _hide_pillow(module: ModuleType) -> None:
    """Hides Pillow from transformers, which would import it with a tokenizer.

    Images are decoded in another process. transformers caches the result of its first check.
    """
    if (looks := getattr(module, "is_vision_available", None)) is None:
        return
    held = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "PIL"}
    sys.modules["PIL"] = None  # type: ignore[assignment]
    try:
        looks()
    finally:
        del sys.modules["PIL"]
        sys.modules.update(held)


def indexed(reads: Callable[..., Structure], models: Path) -> Callable[..., Structure]:
    """`reads(module_path, prefix)`, with the index for the folder `models` if it is current."""

    def define_import_structure(module_path: Any, prefix: str | None = None) -> Structure:
        path = Path(module_path)
        marks = _marks(models) if (path.parent if path.suffix else path) == models else None
        if marks is None:
            return reads(module_path, prefix)
        index = load_json(index_file(), Index)
        if index is None or index.marks != marks:
            index = Index(marks, list(reads(module_path).items()))
            save_json(index_file(), index)
        lead = f"{prefix}." if prefix else ""
        return {
            backends: {lead + name: names for name, names in modules.items()}
            for backends, modules in index.groups
        }

    return define_import_structure


def _marks(models: Path) -> list[str] | None:
    """Values that change with the installed version; None if transformers has another layout."""
    try:
        stats = [file.stat() for file in (models.parent / "__init__.py", models, models / "__init__.py")]
    except OSError:
        return None
    return [str(models), *(f"{stat.st_size} {stat.st_mtime_ns}" for stat in stats)]

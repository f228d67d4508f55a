"""ImportIndex: what transformers finds out about its own files on every import, kept in one file.

transformers 5 makes its lazy names by reading all 1,640 files of its models, and does so twice: 1.2 of
the 2.1 seconds that a worker computed before it could say hello. The answer is the same until another
version is installed, so it is put into the cache folder with the marks of the files it is about, and
taken from there while they fit. Whatever is odd (another layout, a damaged file, a full disk) leaves
transformers to read its files as it always did.

Delete this when `import transformers` no longer opens files of models nobody asked for.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct

from core.system.paths import cache_dir

_MODULE = "transformers.utils.import_utils"
_FUNCTION = "define_import_structure"
# Names by module, by the libraries that they need.
Structure = dict[frozenset[str], dict[str, set[str]]]


class ImportGroup(Struct, frozen=True):
    """The modules that need `backends`, each with its names."""

    backends: list[str]
    modules: dict[str, list[str]]


class Index(Struct, frozen=True):
    """`marks` of the files that were read, and what was found in them."""

    marks: list[str]
    groups: list[ImportGroup]


def index_file() -> Path:
    """There is one, whatever is installed."""
    return cache_dir() / "transformers.json"


def use_index() -> None:
    """From now on in this process; nothing happens if transformers is imported already. Idempotent."""
    if _MODULE not in sys.modules and not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Steps in once, when the module that reads the files is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """The usual loader, which the module sees; afterwards its function asks the index first."""

    def __init__(self, usual: importlib.abc.Loader) -> None:
        self._usual = usual

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._usual
        module.__loader__ = self._usual
        self._usual.exec_module(module)
        reads = getattr(module, _FUNCTION, None)
        if reads is not None and module.__file__:
            setattr(module, _FUNCTION, indexed(reads, Path(module.__file__).parents[1] / "models"))


def indexed(reads: Callable[..., Structure], models: Path) -> Callable[..., Structure]:
    """`reads(module_path, prefix)`, for the folder `models` out of the index if that fits."""

    def define_import_structure(module_path: Any, prefix: str | None = None) -> Structure:
        path = Path(module_path)
        marks = _marks(models) if (path.parent if path.suffix else path) == models else None
        if marks is None:
            return reads(module_path, prefix)
        found = _load(marks)
        if found is None:
            found = reads(module_path)
            _save(marks, found)
        lead = f"{prefix}." if prefix else ""
        return {
            backends: {lead + name: names for name, names in modules.items()}
            for backends, modules in found.items()
        }

    return define_import_structure


def _marks(models: Path) -> list[str] | None:
    """What changes when another version is installed; None if transformers is laid out otherwise."""
    try:
        stats = [file.stat() for file in (models.parent / "__init__.py", models, models / "__init__.py")]
    except OSError:
        return None
    return [str(models), *(f"{stat.st_size} {stat.st_mtime_ns}" for stat in stats)]


def _load(marks: list[str]) -> Structure | None:
    try:
        index = msgspec.json.decode(index_file().read_bytes(), type=Index)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if index.marks != marks:
        return None
    return {
        frozenset(group.backends): {name: set(names) for name, names in group.modules.items()}
        for group in index.groups
    }


def _save(marks: list[str], found: Structure) -> None:
    groups = [
        ImportGroup(sorted(backends), {name: sorted(names) for name, names in modules.items()})
        for backends, modules in found.items()
    ]
    file = index_file()
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(Index(marks, groups)))
        os.replace(fresh, file)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()

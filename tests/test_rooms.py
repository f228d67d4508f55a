"""The structure of the repository: no circular imports, no names of missing files in comments."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
# Modules at a root besides its packages: the window's entry point, Python's entry point, the exceptions.
MODULES = {"app": {"main.py"}, "core": {"errors.py", "python.py"}}
# Documents by name, and what only those know who planned this.
_NAMED = re.compile(r"(?<![\w./*{<-])((?:[\w-]+/)*[\w-]+\.(?:md|py|toml))\b")
_ELSEWHERE = re.compile(r"\b(?:UI\.md|DESIGN\.md|FACTS\.md|STYLE\.md|seeds? \d{3}\b|(?<!mlx )issue \d+)")
# Names in texts that are made up, or of files that people have and the repository has not.
_NOT_OURS = {"config.toml", "helper.py", "tokenizer.py"}


@cache
def _tracked() -> tuple[Path, ...]:
    """The repository's files, relative to its root; without git or in an unpacked archive by .gitignore."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, check=True,
        )  # fmt: skip
        return tuple(Path(name) for name in os.fsdecode(listed.stdout).split("\0") if (ROOT / name).is_file())
    return tuple(sorted(_unignored(ROOT)))


def _unignored(folder: Path) -> Iterator[Path]:
    patterns = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").split()]
    for path in folder.iterdir():
        if path.name == ".git" or any(fnmatch(path.name, pattern) for pattern in patterns):
            continue
        if path.is_dir():
            if not (path / "CACHEDIR.TAG").exists():  # caches say so, and ignore themselves
                yield from _unignored(path)
        else:
            yield path.relative_to(ROOT)


@cache
def _imports(*, for_types: bool = False) -> grimp.ImportGraph:
    return grimp.build_graph("app", "core", exclude_type_checking_imports=not for_types)


def _circle(graph: dict[str, set[str]]) -> str:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(error.args[1])
    return ""


@pytest.mark.parametrize("root", MODULES)
def test_a_root_has_packages_and_few_modules(root: str) -> None:
    files = {path.name for path in _tracked() if path.parent == Path(root)}
    assert files == {"__init__.py", *MODULES[root]}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = _imports(for_types=True)
    assert not _circle({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})


def test_no_rooms_import_each_other_in_a_circle() -> None:
    graph = _imports()
    rooms: dict[str, set[str]] = {}
    for name in graph.modules:
        for other in graph.find_modules_directly_imported_by(name):
            here, there = (".".join(one.split(".")[:2]) for one in (name, other))
            if here != there:
                rooms.setdefault(here, set()).add(there)
    assert not _circle(rooms)


def test_what_is_named_is_there() -> None:
    names = {path.name for path in _tracked()}
    paths = {str(path) for path in _tracked()}
    missing = []
    for path in _tracked():
        if (
            path.suffix not in {".py", ".md"}
            or "fixtures" in path.parts
            or path.is_relative_to("tests/tuning/origins/documents")
            or path == Path("tests/test_rooms.py")
        ):
            continue
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            if elsewhere := _ELSEWHERE.search(line):
                missing.append(f"{path}:{number}: {elsewhere[0]}")
            comment = line.partition("#")[2] if path.suffix == ".py" else ""
            for name in _NAMED.findall(comment):
                known = name in names if "/" not in name else any(one.endswith(name) for one in paths)
                if not known and name not in _NOT_OURS:
                    missing.append(f"{path}:{number}: {name}")
    assert not missing, "\n".join(missing)


def test_files_are_found_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("compares with git's own list, and this is an unpacked archive or git is not installed")
    listed = set(_tracked.__wrapped__())
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert set(_tracked.__wrapped__()) == listed


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches such patterns wrongly; Debian 12 has 3.11.2."""
    sources = {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in _tracked()
        if path.suffix == ".py" and path.parts[0] in ("app", "core")
    }
    found = [
        f"{path}:{node.lineno}"
        for path, source in sources.items()
        if any(mark in source for mark in ("*+", "++", "?+", "(?>"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str | bytes)
        and any(mark in str(node.value) for mark in (")*+", ")++", ")?+", "(?>"))
    ]
    assert not found


def test_the_trees_are_no_larger_than_their_figures() -> None:
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(app|core|tests)` \| ([\d,]+) \|", text, re.MULTILINE)
    limits = {name: int(lines.replace(",", "")) for name, lines in rows}
    found = dict.fromkeys(("core", "app", "tests"), 0)
    for path in _tracked():
        if path.suffix == ".py" and path.parts[0] in found:
            found[path.parts[0]] += len((ROOT / path).read_bytes().splitlines())
    assert limits.keys() == found.keys()
    over = {name: (lines, limits[name]) for name, lines in found.items() if lines > limits[name]}
    assert over == {}, "lines and limit; delete something, or raise it in docs/contributing.md and say why"


# Uses of the product's private names in tests of the window: a file may have so many, and never more.
_PRIVATE_USES = {
    "tests/app/panels/test_document_tab.py": 1,
    "tests/app/shell/test_handlers.py": 4,
    "tests/app/shell/test_screens.py": 3,
}


def _private_uses(source: str) -> list[str]:
    """Private attributes of what is not the object itself, and those that are patched by name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls" | "os" | "sys")):
                continue
            case ast.Attribute(attr=name):
                found.append(name)
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(str(name)), *_]):
                found.append(name.rpartition(".")[2])
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[_, ast.Constant(str(name)), *_]):
                found.append(name)
    return [name for name in found if name.startswith("_") and not name.startswith("__")]


def test_tests_of_the_window_leave_its_private_names_alone() -> None:
    """Else they pin how it is built. Lower a file's figure when it has fewer; new uses are not allowed."""
    uses = {
        str(path): _private_uses((ROOT / path).read_text("utf-8"))
        for path in _tracked()
        if path.suffix == ".py" and path.is_relative_to("tests/app")
    }
    assert not {path: found for path, found in uses.items() if len(found) > _PRIVATE_USES.get(path, 0)}


def test_private_uses_are_found() -> None:
    source = "a._b.c\nself._d\nm.setattr(x, '_e', 1)\nm.setattr('app.f._g', 1)\na.__dict__\nos._exit(0)\n"
    assert sorted(_private_uses(source)) == ["_b", "_e", "_g"]

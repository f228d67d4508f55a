"""`python -m tests.attack.mutants`: put one fault at a time into a package and see whether its tests fail.

Faults: a comparison flipped, a branch dropped, a number off by one, another default, `and` for `or`, a lost
`await`. Their places are drawn by seed, the same for the same code. Each is tried on the package's own tests,
then on its sweeps and on tests that reach it from further away, each within a time limit; a test that hangs
fails. It works in a copy of HEAD, so the checkout stays as it is, and resumes: OUT/mutants.jsonl holds the
outcomes.

A fault without an effect that a test could see is argued in one line of `equal_mutants.txt`:
`module: fault: reason`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_EQUAL = Path(__file__).with_name("equal_mutants.txt")
_ENGINE = ("tests/core/engine",)
_WINDOW = ("tests/app/chat", "tests/app/controllers", "tests/app/journeys")
# Package: the tests that reach it, besides its own.
PACKAGES: dict[str, tuple[str, ...]] = {
    "core/decoding": _ENGINE,
    "core/drafting": ("tests/core/tables", "tests/core/decoding", *_ENGINE),
    "core/kv": ("tests/core/prefill", "tests/core/decoding", *_ENGINE),
    "core/prefill": _ENGINE,
    "core/engine": ("tests/core/tables", "tests/core/worker"),
    "core/tables": ("tests/core/drafting", "tests/core/cli", *_ENGINE),
    "core/folders": ("tests/core/models", *_ENGINE),
    "core/prompt": ("tests/zoo", *_ENGINE),
    "core/models": ("tests/core/folders", *_ENGINE),
    "core/heads": ("tests/core/folders", *_ENGINE),
    "core/serve": ("tests/core/cli",),
    "core/documents": ("tests/core/cli", "tests/attack"),
    "app/session": _WINDOW,
    "app/store": _WINDOW,
    "app/chat": _WINDOW,
}
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
# Where a side is a fraction. What is measured equals it by chance only, so its boundary cannot be seen.
_REVERSED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt
}  # fmt: skip


class Fault(NamedTuple):
    """`text` replaces the characters `start` to `end` (exclusive) of `module`, at `line`."""

    module: str
    line: int
    kind: str
    start: int
    end: int
    text: str
    before: str

    @property
    def name(self) -> str:
        """The fault as a line of `equal_mutants.txt` names it; it holds while the code does."""
        return f"{self.module}: {self.kind} {self.before} -> {self.text}"


def faults(root: Path, package: str, count: int, seed: int) -> list[Fault]:
    """`count` faults of the folder `package` under `root`, each in another line."""
    rng = random.Random(f"{package} {seed}")
    by_line: dict[tuple[str, int], list[Fault]] = {}
    for path in sorted((root / package).rglob("*.py")):
        for fault in _faults_of(str(path.relative_to(root)), path.read_text(encoding="utf-8")):
            by_line.setdefault((fault.module, fault.line), []).append(fault)
    places = rng.sample(sorted(by_line), min(count, len(by_line)))
    return [rng.choice(by_line[place]) for place in places]


def _faults_of(module: str, source: str) -> Iterator[Fault]:
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    fractions = _fractions(tree)
    for node in _evaluated(tree):
        for kind, target, text in _changes(node, fractions):
            start = at(target.lineno, target.col_offset)
            end = at(target.end_lineno or 0, target.end_col_offset or 0)
            before = " ".join(source[start:end].split())
            yield Fault(module, target.lineno, kind, start, end, text, before)


def _evaluated(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of `tree` without annotations, and without what only type checkers read."""
    for name, field in ast.iter_fields(tree):
        if name in ("annotation", "returns"):
            continue
        for node in field if isinstance(field, list) else [field]:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                continue
            if isinstance(node, ast.AST):
                yield node
                yield from _evaluated(node)


def _fractions(tree: ast.Module) -> frozenset[str]:
    """The names of the module's constants that are fractions."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts) if several else [(target, node.value)]  # type: ignore[attr-defined]
                found |= {
                    name.id for name, value in pairs if isinstance(name, ast.Name) and _is_fraction(value)
                }
    return frozenset(found)


def _is_fraction(value: ast.expr, named: frozenset[str] = frozenset()) -> bool:
    return (isinstance(value, ast.Constant) and isinstance(value.value, float)) or (
        isinstance(value, ast.Name) and value.id in named
    )


def _changes(node: ast.AST, fractions: frozenset[str]) -> Iterator[tuple[str, ast.expr, str]]:
    """Kinds of faults that fit `node`: the expression that is replaced, and its replacement."""
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _FLIPPED:
            changed = copy.deepcopy(node)
            measures = any(_is_fraction(side, fractions) for side in (node.left, node.comparators[0]))
            flipped = {**_FLIPPED, **_REVERSED} if measures else _FLIPPED
            changed.ops[0] = flipped[type(operator)]()
            yield "comparison", node, f"({ast.unparse(changed)})"
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "branch", test, "False"
        case ast.BoolOp():
            changed_bool = copy.deepcopy(node)
            changed_bool.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            yield "and/or", node, f"({ast.unparse(changed_bool)})"
        case ast.BinOp(right=ast.Constant(value=int(value))) if not isinstance(value, bool):
            yield "off by one", node.right, str(value + 1)
        case (
            ast.Slice(lower=ast.Constant(value=int(value)) as bound)
            | ast.Slice(lower=None, upper=ast.Constant(value=int(value)) as bound)
        ):
            yield "off by one", bound, str(value + 1)
        case ast.arguments():
            for default in [*node.defaults, *filter(None, node.kw_defaults)]:
                match default:
                    case ast.Constant(value=bool(value)):
                        yield "default", default, str(not value)
                    case ast.Constant(value=int(value)):
                        yield "default", default, str(value + 1)
        case ast.Await(value=value):
            yield "lost await", node, f"({ast.unparse(value)})"


def try_out(
    tree: Path, package: str, fault: Fault, python: str, limit_s: float, *, further: bool = True
) -> dict[str, object]:
    """Which tests catch `fault` in the copy `tree`, if any.

    `further`: sweeps and other packages' tests run, too.
    """
    file = tree / fault.module
    before = file.read_text(encoding="utf-8")
    started = time.monotonic()
    own = f"tests/{package}"
    # What is named after the module finds most of its faults, and finds them soon.
    named = sorted(
        str(path.relative_to(tree)) for path in (tree / own).rglob(f"test_{Path(fault.module).stem}*.py")
    )
    mine = (*named, own)
    stages = {"own": mine}
    if further:
        stages |= {"own sweeps": ("-m", "sweep and not slow", *mine), "further": PACKAGES[package]}
    caught, by = "", ""
    file.write_text(before[: fault.start] + fault.text + before[fault.end :], encoding="utf-8")
    try:
        for stage, arguments in stages.items():
            if by := _failing(tree, python, arguments, limit_s):
                caught = stage
                break
    finally:
        file.write_text(before, encoding="utf-8")
    took = {"by": by, "seconds": round(time.monotonic() - started, 1)}
    return {"package": package, "fault": fault.name, "line": fault.line, "caught": caught, **took}


def _failing(tree: Path, python: str, arguments: Sequence[str], limit_s: float) -> str:
    """What failed, in a few words; empty if nothing did."""
    existing = [each for each in arguments if not each.startswith("tests/") or (tree / each).exists()]
    command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=60", *existing]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return ""  # a test that hangs has failed by its own limit; these tests are many
    if done.returncode in (0, 5):  # 5: there are none
        return ""
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return said[0] if said else f"exit status {done.returncode}"


def equal_faults() -> dict[str, str]:
    """Faults without a visible effect, with the reason."""
    lines = _EQUAL.read_text(encoding="utf-8").splitlines() if _EQUAL.exists() else []
    return dict(line.rsplit(": ", 1) for line in lines if line and not line.startswith("#"))


def report(outcomes: Sequence[dict[str, object]]) -> str:
    """A table in Markdown, per package, then the faults that survived, and the equal ones."""
    equal = equal_faults()
    rows = [
        "| package | faults | own tests | with further tests | equal | survived |",
        "|---|---|---|---|---|---|",
    ]
    for package in [*PACKAGES, ""]:
        of = [each for each in outcomes if not package or each["package"] == package]
        if not of:
            continue
        own = sum(each["caught"] == "own" for each in of)
        caught = sum(each["caught"] != "" for each in of)
        same = sum(each["caught"] == "" and each["fault"] in equal for each in of)
        share = f"{caught} ({caught / max(1, len(of) - same):.0%})"
        name = f"`{package}`" if package else "all"
        rows.append(f"| {name} | {len(of)} | {own} | {share} | {same} | {len(of) - caught - same} |")
    left = [each for each in outcomes if each["caught"] == ""]
    for title, want in (("Survived", False), ("Equal", True)):
        rows += ["", f"{title}:", ""]
        rows += [
            f"- line {each['line']}, {each['fault']}" + (f": {equal[str(each['fault'])]}" if want else "")
            for each in left
            if (each["fault"] in equal) == want
        ]
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults that `arguments` ask for, and print the table of all outcomes."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.mutants")
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)} (default all)"
    )
    parser.add_argument("--count", type=int, default=20, help="faults per package (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=300.0, metavar="S", help="of each of two runs (default 300)"
    )
    parser.add_argument("--own", action="store_true", help="try only the packages' own tests")
    parser.add_argument("--out", type=Path, default=Path("out/mutants"), metavar="DIR")
    options = parser.parse_args(arguments)
    if unknown := [each for each in options.packages if each not in PACKAGES]:
        parser.error(f"unknown package {', '.join(unknown)}; packages are {', '.join(PACKAGES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    tree = options.out.resolve() / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    journal = options.out / f"mutants-{options.seed}.jsonl"
    outcomes = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    known = {each["fault"] for each in outcomes}
    with journal.open("a") as file:
        for package in options.packages or PACKAGES:
            for fault in faults(tree, package, options.count, options.seed):
                if fault.name not in known:
                    tried = try_out(
                        tree, package, fault, sys.executable, options.limit, further=not options.own
                    )
                    outcomes.append(tried)
                    print(json.dumps(outcomes[-1]), file=file, flush=True)
    print(report(outcomes), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

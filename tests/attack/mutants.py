"""`python -m tests.attack.mutants`: put faults into a room's code one at a time and see whether tests fail.

The faults are cosmic-ray's (`make mutants` installs it in a folder of its own, with which this runs); they
are drawn by seed, a place in the code first and then one of the faults that fit there, so that arithmetic,
for which there are many, is not drawn all the time. Each is tried on the room's own tests; what they let
through on what else `make test` has of it; and what that lets through on the slow tests. A fault in an
annotation of a function is none and not drawn.

Files are changed in place and put back: it refuses to run where the code has uncommitted changes.
Outcomes are written to OUT/mutants.jsonl as they come; what is there is not tried again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_STAGES = ("own", "further", "slow")
# Of one stage, for one fault: several times what the slowest takes. A fault that hangs is caught.
_MOST_S = 600
_ENGINE = ("tests/core/engine", "tests/core/bench/test_replay.py", "tests/core/bench/test_reliability.py")
_WINDOW = tuple(
    f"tests/app/{room}" for room in ("controllers", "features", "panels", "shell", "chat", "journeys")
)
_SLOW_ENGINE = ("tests/core/engine/test_conformance.py",)
# Room: what else of `make test` tells of it, and what of the slow tests.
ROOMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "core/decoding": (_ENGINE, _SLOW_ENGINE),
    "core/kv": (("tests/core/prefill", "tests/core/decoding", *_ENGINE), _SLOW_ENGINE),
    "core/prefill": (_ENGINE, ()),
    "core/drafting": (("tests/core/tables", "tests/core/decoding", *_ENGINE), _SLOW_ENGINE),
    "app/session": (_WINDOW, ()),
    "app/store": (("tests/app/controllers", "tests/app/journeys"), ()),
}


class Fault(NamedTuple):
    """One fault of one module: cosmic-ray's operator and which of the places that it fits."""

    module: str
    line: int
    operator: str
    occurrence: int
    source: str  # of the module with it


def faults(room: str, count: int, seed: int) -> Iterator[Fault]:
    """`count` faults of the folder `room`, the same for the same code and seed."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    places: dict[tuple[str, int, int], list[tuple[str, int]]] = {}
    for module in sorted(Path(room).rglob("*.py")):
        tree = get_ast_from_path(module)
        for name in sorted(operator_names()):
            kind = get_operator(name)
            if kind.arguments():
                continue
            operator = kind()
            found = [start for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node)]
            for occurrence, (line, column) in enumerate(found):
                places.setdefault((str(module), line, column), []).append((name, occurrence))
    rng = random.Random(f"{room} {seed}")
    order = sorted(places)
    rng.shuffle(order)
    drawn = 0
    for place in order:
        module, line, _ = place
        name, occurrence = rng.choice(places[place])
        before = Path(module).read_bytes()
        changed = mutate_code(before, get_operator(name)(), occurrence)
        if changed is None or _bare(before.decode()) == _bare(changed):
            continue
        yield Fault(module, line, name.removeprefix("core/"), occurrence, changed)
        drawn += 1
        if drawn == count:
            return


def _bare(source: str) -> str:
    """The syntax tree without what a function's annotations say: they are never evaluated."""
    tree: Any = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            inside = [part for part in ast.walk(node) if isinstance(part, ast.AnnAssign)]
            for part in [*inside, *(part for part in ast.walk(node.args) if isinstance(part, ast.arg))]:
                part.annotation = ast.Constant(0)
    return ast.dump(tree)


def try_out(room: str, fault: Fault, python: str) -> dict[str, object]:
    """Which stage of tests catches it, if any."""
    further, slow = ROOMS[room]
    paths = {"own": (f"tests/{room}",), "further": further, "slow": slow}
    file = Path(fault.module)
    before = file.read_bytes()
    started, caught, by = time.monotonic(), "", ""
    try:
        file.write_text(fault.source, "utf-8")
        for stage in _STAGES:
            if paths[stage] and (by := _failing(python, stage, paths[stage])):
                caught = stage
                break
    finally:
        file.write_bytes(before)
    return {
        "room": room,
        **{name: value for name, value in fault._asdict().items() if name != "source"},
        "text": fault.source.splitlines()[fault.line - 1].strip(),
        "caught": caught,
        "by": by,
        "seconds": round(time.monotonic() - started, 1),
    }


def _failing(python: str, stage: str, paths: Sequence[str]) -> str:
    """What failed, in a few words; empty if nothing did."""
    marks = ["-m", "sweep or slow"] if stage == "slow" else []
    command = [python, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=60", *marks]
    existing = [path for path in paths if Path(path).exists()]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *existing], env=environment, capture_output=True, text=True, timeout=_MOST_S
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_MOST_S} s"
    if done.returncode == 0:
        return ""
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return said[0] if said else f"exit status {done.returncode}"


def report(lines: Sequence[dict[str, object]]) -> str:
    """A table in Markdown: of each room, what was caught by which tests, then what was not caught at all."""
    rows = ["| room | faults | own tests | `make test` | with the slow tests |", "|---|---|---|---|---|"]
    for room in [*ROOMS, ""]:
        of_room = [line for line in lines if not room or line["room"] == room]
        if not of_room:
            continue
        caught = [sum(line["caught"] in _STAGES[: number + 1] for line in of_room) for number in range(3)]
        shares = " | ".join(f"{number} ({number / len(of_room):.0%})" for number in caught)
        rows.append(f"| {f'`{room}`' if room else 'all'} | {len(of_room)} | {shares} |")
    rows += ["", "Not caught:", ""]
    rows += [
        f"- `{line['module']}:{line['line']}` {line['operator']}: `{line['text']}`"
        for line in lines
        if not line["caught"]
    ]
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try what `arguments` ask for, and print the table of all that is known."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.mutants")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)} (default all)")
    parser.add_argument("--count", type=int, default=22, help="faults a room (default 22)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", default=sys.executable, help="the one that runs the tests")
    parser.add_argument("--out", type=Path, default=Path("out/mutants"), metavar="DIR")
    options = parser.parse_args(arguments)
    if unknown := [room for room in options.rooms if room not in ROOMS]:
        parser.error(f"no room {', '.join(unknown)}; there are {', '.join(ROOMS)}")
    changed = subprocess.run(["git", "status", "--short", "app", "core"], capture_output=True, text=True)
    if changed.stdout:
        print(
            f"There are changes that are not committed:\n{changed.stdout}Commit them first.", file=sys.stderr
        )
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    journal = options.out / "mutants.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    known = {(line["module"], line["operator"], line["occurrence"]) for line in lines}
    with journal.open("a") as file:
        for room in options.rooms or ROOMS:
            for fault in faults(room, options.count, options.seed):
                if (fault.module, fault.operator, fault.occurrence) in known:
                    continue
                lines.append(try_out(room, fault, options.python))
                print(json.dumps(lines[-1]), file=file, flush=True)
    print(report(lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

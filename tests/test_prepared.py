"""msgspec's descriptions of types: made once, under a lock, whichever threads use a type first."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Types without a description that threads would share.
PLAIN = {"Any", "bool", "bytes", "dict", "float", "int", "list", "msgspec", "str", "tuple"}
# Three threads decode new types of twenty optional fields each, all at once.
FIRST_USES = """
import dataclasses, msgspec, sys, threading, typing
from core.system.prepared import prepared

of, kind, count = prepared if sys.argv[1] == "prepared" else lambda kind: kind, sys.argv[2], int(sys.argv[3])
make = {
    "struct": lambda types: msgspec.defstruct("Made", list(types.items())),
    "dataclass": lambda types: dataclasses.make_dataclass("Made", list(types.items())),
    "dict": lambda types: typing.TypedDict("Made", types),
}[kind]
names = [f"field_{index}" for index in range(20)]
sys.setswitchinterval(1e-6)
for _ in range(count):
    made, together = make(dict.fromkeys(names, typing.Optional[int])), threading.Barrier(3)
    def decode():
        together.wait()
        msgspec.json.decode(msgspec.json.encode(dict.fromkeys(names, 1)), type=of(made))
    threads = [threading.Thread(target=decode) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("all decoded")
"""


def first_uses(how: str, kind: str, count: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", FIRST_USES, how, kind, str(count)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["struct", "dataclass", "dict"])
def test_threads_may_use_a_type_first_at_the_same_time(kind: str) -> None:
    done = first_uses("prepared", kind, 300)
    assert (done.returncode, done.stdout) == (0, "all decoded\n"), done.stderr


@pytest.mark.sweep
def test_this_msgspec_still_needs_it() -> None:
    """Fails with a msgspec that is safe: delete `core.system.prepared` then."""
    assert first_uses("bare", "struct", 3000).returncode != 0


def typed_calls(code: str) -> Iterator[tuple[int, ast.expr]]:
    """Line and type of each call of msgspec that describes a type."""
    for call in ast.walk(ast.parse(code)):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        of = [each.value for each in call.keywords if each.arg == "type"]
        if not ast.unparse(call.func).startswith("msgspec.") and name != "Decoder":
            continue
        if name in ("Decoder", "convert"):
            of += call.args[name == "convert" :][:1]
        elif name != "decode":
            continue
        yield from ((call.lineno, each) for each in of)


def is_safe(of: ast.expr) -> bool:
    if isinstance(of, ast.Call):
        return ast.unparse(of.func) == "prepared"
    return {each.id for each in ast.walk(of) if isinstance(each, ast.Name)} <= PLAIN


def test_every_type_that_msgspec_is_given_was_prepared() -> None:
    found = [
        (path, line, of)
        for folder in ("app", "core")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "prepared.py" and "msgspec" in (code := path.read_text())
        for line, of in typed_calls(code)
    ]
    assert len(found) > 40
    bare = [
        f"{path}:{line}: write prepared({ast.unparse(of)})" for path, line, of in found if not is_safe(of)
    ]
    assert not bare, "\n".join(bare)

"""Every case of every client's program."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, JAVASCRIPT, Clients


def _cases() -> list[tuple[str, str]]:
    found = []
    for path in sorted(Path(HERE, "programs").glob("*_client.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("case_"):
                found.append((path.stem, node.name))
    names = re.findall(r"^async function (case_\w+)", JAVASCRIPT.read_text(), re.MULTILINE)
    return [*found, *((JAVASCRIPT.stem, name) for name in names)]


@pytest.mark.parametrize(("program", "case"), _cases())
def test_case(clients: Clients, environments: Path, program: str, case: str) -> None:
    if program == JAVASCRIPT.stem and not (environments / "js" / ".installed").exists():
        pytest.skip("JavaScript's clients need Node, and npm is not installed")
    problem = clients.outcome(program, case)
    assert not problem, problem

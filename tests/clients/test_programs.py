"""Every case of every client's program."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, Clients


def _cases() -> list[tuple[str, str]]:
    found = []
    for path in sorted(Path(HERE, "programs").glob("*_client.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("case_"):
                found.append((path.stem, node.name))
    return found


@pytest.mark.parametrize(("program", "case"), _cases())
def test_case(clients: Clients, program: str, case: str) -> None:
    problem = clients.outcome(program, case)
    assert not problem, problem

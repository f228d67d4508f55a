"""Optional tests: what `make test` leaves out of long lists, and which marks a run asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

# Marks of tests that run only when `-m` asks for them; no items are made of the others (tests/conftest.py).
OPTIONAL = frozenset(("sweep", "slow", "quiet", "e2e", "clients", "agents", "cluster"))
# The sets of optional marks that `-m` selects; filled before tests are collected.
asked: list[set[str]] = []


def thinned(values: Iterable[Any], keep: Collection[Any]) -> list[Any]:
    """Parameters: those not in `keep` are sweeps. Every one of `keep` must be among them."""
    found = list(values)
    assert all(each in found for each in keep), f"{keep} is not all of {found}"
    return [each if each in keep else pytest.param(each, marks=pytest.mark.sweep) for each in found]

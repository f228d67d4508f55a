"""Thinned: what of a long list `make test` tries; all the rest of it is tried by `make test-sweeps`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thinned(values: Iterable[Any], keep: Collection[Any]) -> list[Any]:
    """Parameters: those not in `keep` are sweeps. Every one of `keep` must be among them."""
    found = list(values)
    assert all(each in found for each in keep), f"{keep} is not all of {found}"
    return [each if each in keep else pytest.param(each, marks=pytest.mark.sweep) for each in found]

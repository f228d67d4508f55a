"""One server for all that only ask it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.serve.served import Served, serving


@pytest.fixture(scope="session")
def served(toy_folder: Path) -> Iterator[Served]:
    """With the toy model, for this machine alone, without a key."""
    with serving(toy_folder) as found:
        yield found

"""An archive in memory that is closed after the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.store.library import Library


@pytest.fixture
def archive() -> Iterator[Library]:
    with closing(Library(None)) as store:
        yield store

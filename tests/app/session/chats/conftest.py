"""An archive in memory that is closed after the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.store.chat_store import MemoryStore


@pytest.fixture
def archive() -> Iterator[MemoryStore]:
    with closing(MemoryStore()) as store:
        yield store

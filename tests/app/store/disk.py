"""A disk that takes nothing more, for this process: the system refuses to let any file grow."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

_KIND = resource.RLIMIT_FSIZE


@contextmanager
def full_disk() -> Iterator[None]:
    """Writes fail inside, those of SQLite and of child processes that are started included."""
    soft, hard = resource.getrlimit(_KIND)
    resource.setrlimit(_KIND, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(_KIND, (soft, hard))

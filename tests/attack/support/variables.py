"""Environment variables for a while: a campaign that runs inside a test leaves none behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """`values` are in the environment, of children started meanwhile too; then it is as it was."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

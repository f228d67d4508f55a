"""Reading the pages of a damaged database without a child process, where the process is not the subject."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from core.system.sqlite_pages import lines


class InProcess:
    """In place of the `ReaderProcess` of a command whose last argument is the file."""

    def __init__(self, command: Sequence[str], *, silence_s: float, whole_s: float) -> None:
        self._path = Path(command[-1])

    def lines(self) -> Generator[bytes]:
        yield from lines(self._path)


@pytest.fixture
def salvaged_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.salvage.ReaderProcess", InProcess)

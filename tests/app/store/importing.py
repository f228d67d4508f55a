"""Reading an export without a child process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.chat_archives.process import Line, lines_of
from core.chat_archives.reading import ChatReader


class InProcess:
    """The archive at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> Iterator[Line]:
        return lines_of(ChatReader(self._path))

    def stop(self) -> None:
        pass

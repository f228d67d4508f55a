"""Reading damaged databases and images without child processes, where these are not the subject."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from core.documents.client import ImageReading
from core.documents.images import THUMBNAIL_PX, preview
from core.events import Image
from core.system.sqlite_pages import lines


class InProcess:
    """In place of the `ReaderProcess` of a command whose last argument is the file."""

    def __init__(self, command: Sequence[str], *, silence_s: float, whole_s: float) -> None:
        self._path = Path(command[-1])

    def lines(self) -> Generator[bytes]:
        yield from lines(self._path)


@pytest.fixture
def images_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are decoded without a child process."""

    def with_thumbnail(self: ImageReading) -> tuple[Image, bytes]:
        line = preview(self.path, THUMBNAIL_PX)
        assert line.image
        assert line.thumbnail
        return line.image, line.thumbnail

    monkeypatch.setattr(ImageReading, "with_thumbnail", with_thumbnail)


@pytest.fixture
def salvaged_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.salvage.ReaderProcess", InProcess)

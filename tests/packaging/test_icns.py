"""The icon file: every size, from one drawing, and damage is found."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QImage

from bundle.icons.icns import KINDS, IcnsError, png_size, read_icns, write_icns
from bundle.icons.icon import render


@pytest.fixture(scope="module")
def pngs() -> dict[int, bytes]:
    return {size: render(size) for size in set(KINDS.values())}


def test_every_kind_has_a_drawing_of_its_size(pngs: dict[int, bytes]) -> None:
    assert read_icns(write_icns(pngs)) == KINDS


def test_qt_reads_the_same_drawing_back(pngs: dict[int, bytes]) -> None:
    image = QImage.fromData(pngs[1024], "PNG")
    assert (image.width(), image.height()) == (1024, 1024)
    assert image.pixelColor(2, 2).alpha() == 0, "the corners are not transparent"
    assert image.pixelColor(512, 200).alpha() == 255
    green = image.pixelColor(300, 470)
    assert green.green() > green.red() + 40, "the accepted token is not green"


def test_a_missing_size_is_refused(pngs: dict[int, bytes]) -> None:
    with pytest.raises(IcnsError, match="1024"):
        write_icns({size: png for size, png in pngs.items() if size != 1024})


@pytest.mark.parametrize("cut", [4, 100, -1])
def test_a_cut_off_file_is_refused(pngs: dict[int, bytes], cut: int) -> None:
    with pytest.raises(IcnsError):
        read_icns(write_icns(pngs)[:cut])


def test_a_chunk_that_is_no_png_is_refused() -> None:
    with pytest.raises(IcnsError, match="PNG"):
        png_size(b"GIF89a" + bytes(40))

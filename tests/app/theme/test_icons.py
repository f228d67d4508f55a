"""Icons: every drawing renders, in one colour, at the size asked for."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QGuiApplication, QImage

from app.theme.icons import ICONS, icon_pixmap

NAMES = sorted(file.stem for file in ICONS.glob("*.svg"))


def _inked(image: QImage) -> list[QColor]:
    pixels = (image.pixelColor(x, y) for y in range(image.height()) for x in range(image.width()))
    return [pixel for pixel in pixels if pixel.alpha() > 200]


@pytest.mark.parametrize("name", NAMES)
def test_every_icon_takes_the_colour(name: str, qapp: QGuiApplication) -> None:
    color = QColor("#0072B2")
    inked = _inked(icon_pixmap(name, color, 16, 3.0).toImage())
    assert inked
    for pixel in inked:
        near = (pixel.red(), pixel.green(), pixel.blue())
        assert all(abs(a - b) <= 2 for a, b in zip(near, (0x00, 0x72, 0xB2), strict=True))


def test_dense_screens_get_more_pixels(qapp: QGuiApplication) -> None:
    pixmap = icon_pixmap("send", QColor("black"), 14, 2.0)
    assert pixmap.width() == 28
    assert pixmap.devicePixelRatio() == 2.0
    assert pixmap.deviceIndependentSize().width() == 14


def test_colours_do_not_mix_in_the_cache(qapp: QGuiApplication) -> None:
    red = _inked(icon_pixmap("check", QColor("#FF0000"), 16, 2.0).toImage())
    blue = _inked(icon_pixmap("check", QColor("#0000FF"), 16, 2.0).toImage())
    assert red[0].red() > 200 > red[0].blue()
    assert blue[0].blue() > 200 > blue[0].red()


def test_a_missing_drawing_is_named(qapp: QGuiApplication) -> None:
    with pytest.raises(FileNotFoundError, match="unicorn"):
        icon_pixmap("unicorn", QColor("black"))

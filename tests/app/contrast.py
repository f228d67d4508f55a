"""Contrast as people see it: a window is painted without its words, the words' inks are noted with where
they would stand, and each ink is measured against what is painted there.

Whatever a widget paints itself is noted as it is painted, so no list of pairs can be out of date. Texts
that Qt paints are taken from palettes (fields) or from an enlarged picture (buttons, choices). Disabled
controls are exempt, as WCAG has it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QTextEdit,
    QWidget,
)

from app.richtext.text_canvas import TextCanvas
from app.theme.theme import theme
from tests.app.painted import noted_words
from tests.app.stage import not_counted

TEXT, LARGE, GRAPHIC = 4.5, 3.0, 3.0
_FIELDS = (QLineEdit, QTextEdit, QPlainTextEdit)


@dataclass(frozen=True)
class Ink:
    """Something written: its colour, what lies under it, and what it should have at least."""

    what: str
    ink: str
    paper: str
    least: float

    @property
    def ratio(self) -> float:
        return ratio(QColor(self.ink), QColor(self.paper))

    @property
    def fails(self) -> bool:
        return self.ratio < self.least

    def __str__(self) -> str:
        return f"{self.what[:40]!r}: {self.ink} on {self.paper} is {self.ratio:.2f}, below {self.least}"


def luminance(color: QColor) -> float:
    """Relative luminance by WCAG 2."""

    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(part) for part in (color.redF(), color.greenF(), color.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: QColor, other: QColor) -> float:
    """Contrast by WCAG 2: 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@not_counted()
def inks(window: QWidget) -> list[Ink]:
    with noted_words() as noted:
        image = window.grab().toImage()
    pixels = _pixels(image)
    found = []
    for word in noted:
        box, font = word.area.toAlignedRect().intersected(image.rect()), word.font
        if box.isEmpty() or not word.text.strip() or not word.enabled:
            continue
        size, bold = (
            font.pixelSize() if font.pixelSize() > 0 else font.pointSizeF() * 96 / 72,
            font.weight() >= 600,
        )
        least = LARGE if size >= 24 or (bold and size >= 18.66) else TEXT
        found += [Ink(word.text, word.color.name(), paper, least) for paper in _papers(pixels, box)]
    for field in (each for kind in _FIELDS for each in window.findChildren(kind)):
        if field.isVisible() and field.isEnabled():
            found += _field_inks(field, pixels, window)
    return found + _painted_by_qt(window)


_ENLARGED = 3
_BY_QT = (QPushButton, QCheckBox, QComboBox)


def _painted_by_qt(window: QWidget) -> list[Ink]:
    """The texts of buttons and choices: the commonest colour of each is its paper, the one that stands out
    most is its ink. Strokes are wide enough in the enlarged picture to have the colour of the ink."""
    image = QImage(window.size() * _ENLARGED, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_ENLARGED)
    window.render(image)
    pixels = _pixels(image)
    found = []
    for each in (each for kind in _BY_QT for each in window.findChildren(kind)):
        text = each.currentText() if isinstance(each, QComboBox) else each.text()
        if not text or not each.isVisible() or not each.isEnabled() or each.visibleRegion().isEmpty():
            continue
        at, inset = each.mapTo(window, QPoint(0, 0)), 4
        if isinstance(each, QCheckBox):
            at += QPoint(each.sizeHint().height(), 0)  # the box itself is no text
        box = QRect(
            at * _ENLARGED, (each.size() - QSize(26 if isinstance(each, QComboBox) else 0, 0)) * _ENLARGED
        )
        box = box.adjusted(inset, 2 * inset, -inset, -2 * inset).intersected(image.rect())
        seen = _colors(pixels[box.top() : box.bottom(), box.left() : box.right()])
        if not seen:
            continue
        paper = seen.most_common(1)[0][0]
        inks = [name for name, count in seen.items() if count >= 8]
        ink = max(inks, key=lambda name: ratio(QColor(name), QColor(paper)))
        found.append(Ink(text, ink, paper, TEXT))
    return found


@not_counted()
def rings(window: QWidget) -> list[Ink]:
    """The ring of every text that can have one, on what is inside it."""
    if focused := window.focusWidget():
        focused.clearFocus()
    with noted_words():
        image = window.grab().toImage()
    pixels = _pixels(image)
    found = []
    for control in window.findChildren(TextCanvas):
        if not control.isVisible() or not control.isEnabled():
            continue
        outer = QRect(control.mapTo(window, QPoint(0, 0)), control.size())
        middle = outer.adjusted(1, 1, -1, -1)
        name = f"ring of {control.accessibleName() or type(control).__name__}"
        sides = (
            QRect(middle.topLeft(), QSize(middle.width(), 1)),
            QRect(middle.bottomLeft(), QSize(middle.width(), 1)),
            QRect(middle.topLeft(), QSize(1, middle.height())),
            QRect(middle.topRight(), QSize(1, middle.height())),
        )
        seen = Counter(paper for side in sides for paper in _papers(pixels, side.intersected(image.rect())))
        # What only one side lies on, such as a scroll bar, takes nothing from the other three.
        papers = [paper for paper, count in seen.items() if count > 1]
        ink = theme.color("focus").name()
        found += [Ink(name, ink, paper, GRAPHIC) for paper in papers]
    return found


def pointed_at(window: QWidget, pointed: bool) -> None:
    """Every button looks as it does under the pointer."""

    for button in window.findChildren(QAbstractButton):
        button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, pointed)
        button.update()


def pressed(window: QWidget, down: bool) -> None:
    for button in window.findChildren(QAbstractButton):
        button.setDown(down)


def _pixels(image: QImage) -> np.ndarray:
    """The colours of `image` as 0xRRGGBB, by row and column."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)
    return rows[:, : image.width()] & 0xFFFFFF


def _colors(pixels: np.ndarray) -> Counter[str]:
    values, counts = np.unique(pixels, return_counts=True)
    return Counter({f"#{value:06x}": int(count) for value, count in zip(values, counts)})


def _papers(pixels: np.ndarray, box: QRect) -> list[str]:
    """What lies under a line of text: the colours that make up a good part of its box."""
    step_x, step_y = max(1, box.width() // 24), max(1, box.height() // 6)
    seen = _colors(pixels[box.top() : box.bottom() + 1 : step_y, box.left() : box.right() + 1 : step_x])
    return [name for name, count in seen.most_common() if count >= 0.2 * seen.total()]


def _field_inks(field: Any, pixels: np.ndarray, window: QWidget) -> list[Ink]:
    rows, columns = pixels.shape
    box = QRect(field.mapTo(window, QPoint(0, 0)), field.size()).intersected(QRect(0, 0, columns, rows))
    if box.isEmpty() or not (papers := _papers(pixels, box)):
        return []
    palette, role = field.palette(), QPalette.ColorRole
    name = field.accessibleName() or type(field).__name__
    pairs = [(role.Text, papers[0]), (role.HighlightedText, palette.color(role.Highlight).name())]
    if getattr(field, "placeholderText", lambda: "")():
        pairs.append((role.PlaceholderText, papers[0]))
    return [Ink(name, palette.color(ink).name(), under, TEXT) for ink, under in pairs]

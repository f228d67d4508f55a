"""Contrast as people see it: a window is painted without its words, the words' inks are noted with where
they would stand, and each ink is measured against what is painted there.

Whatever a widget paints itself is noted as it is painted, so no list of pairs can be out of date. Texts
that Qt paints (fields) are taken from their palettes. Disabled controls are exempt, as WCAG has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPalette, QTextLayout
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QPlainTextEdit, QTextEdit, QWidget

from app.controls.focus_ring import RING_PX, FocusRing
from app.theme.theme import Theme

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


def inks(window: QWidget) -> list[Ink]:
    """All words of `window` as it stands."""
    with _noted() as noted:
        image = window.grab().toImage()
    found = []
    for what, color, font, area in noted:
        box = area.toAlignedRect().intersected(image.rect())
        if box.isEmpty() or not what.strip():
            continue
        size, bold = (
            font.pixelSize() if font.pixelSize() > 0 else font.pointSizeF() * 96 / 72,
            font.weight() >= 600,
        )
        least = LARGE if size >= 24 or (bold and size >= 18.66) else TEXT
        found += [Ink(what, color.name(), paper, least) for paper in _papers(image, box)]
    for field in (each for kind in _FIELDS for each in window.findChildren(kind)):
        if field.isVisible() and field.isEnabled():
            found += _field_inks(field, image, window)
    return found


def rings(window: QWidget, theme: Theme) -> list[Ink]:
    """The ring of every control that can have one, on what is around it."""
    if focused := window.focusWidget():
        focused.clearFocus()
    with _noted():
        image = window.grab().toImage()
    found = []
    for ring in window.findChildren(FocusRing):
        control = ring._control
        if not control.isVisible() or not control.isEnabled():
            continue
        grow = RING_PX - ring._inset_px
        outer = QRect(control.mapTo(window, QPoint(0, 0)), control.size()).adjusted(-grow, -grow, grow, grow)
        middle = outer.adjusted(1, 1, -1, -1)
        name = f"ring of {control.accessibleName() or type(control).__name__}"
        sides = (
            QRect(middle.topLeft(), QSize(middle.width(), 1)),
            QRect(middle.bottomLeft(), QSize(middle.width(), 1)),
            QRect(middle.topLeft(), QSize(1, middle.height())),
            QRect(middle.topRight(), QSize(1, middle.height())),
        )
        seen = Counter(paper for side in sides for paper in _papers(image, side.intersected(image.rect())))
        # What only one side lies on, such as a scroll bar, takes nothing from the other three.
        papers = [paper for paper, count in seen.items() if count > 1]
        ink = theme.color("focus").name()
        found += [Ink(name, ink, paper, GRAPHIC) for paper in papers]
    return found


def pointed_at(window: QWidget, pointed: bool) -> None:
    """Every button looks as it does under the pointer."""
    from PySide6.QtCore import Qt

    for button in window.findChildren(QAbstractButton):
        button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, pointed)
        button.update()


def pressed(window: QWidget, down: bool) -> None:
    """Every button looks as it does while it is pressed."""
    for button in window.findChildren(QAbstractButton):
        button.setDown(down)


def _papers(image: QImage, box: QRect) -> list[str]:
    """What lies under a line of text: the colours that make up a good part of its box."""
    seen: Counter[str] = Counter()
    step_x, step_y = max(1, box.width() // 24), max(1, box.height() // 6)
    for x in range(box.left(), box.right() + 1, step_x):
        for y in range(box.top(), box.bottom() + 1, step_y):
            seen[image.pixelColor(x, y).name()] += 1
    return [name for name, count in seen.items() if count >= 0.2 * seen.total()]


def _field_inks(field: Any, image: QImage, window: QWidget) -> list[Ink]:
    box = QRect(field.mapTo(window, QPoint(0, 0)), field.size()).intersected(image.rect())
    if box.isEmpty():
        return []
    palette, role = field.palette(), QPalette.ColorRole
    paper = Counter(_papers(image, box)).most_common(1)[0][0] if _papers(image, box) else ""
    name = field.accessibleName() or type(field).__name__
    pairs = [(role.Text, paper), (role.HighlightedText, palette.color(role.Highlight).name())]
    if getattr(field, "placeholderText", lambda: "")():
        pairs.append((role.PlaceholderText, paper))
    return [Ink(name, palette.color(ink).name(), under, TEXT) for ink, under in pairs if under]


def _x(found: Any) -> float:
    return float(found[0] if isinstance(found, tuple) else found)


@contextmanager
def _noted() -> Iterator[list[tuple[str, QColor, QFont, QRectF]]]:
    """Words are not painted but noted: what, colour, face, and where on the device."""
    noted: list[tuple[str, QColor, QFont, QRectF]] = []
    draw_text, draw_layout = QPainter.drawText, QTextLayout.draw

    def note(painter: QPainter, what: str, color: QColor, font: QFont, area: QRectF) -> None:
        device = painter.device()
        if isinstance(device, QWidget) and not device.isEnabled():
            return
        noted.append((what, QColor(color), QFont(font), painter.deviceTransform().mapRect(area)))

    def text(painter: QPainter, *given: Any) -> None:
        what = next(each for each in reversed(given) if isinstance(each, str))
        metrics = painter.fontMetrics()
        if isinstance(given[0], QRectF | QRect):
            flags = next((int(each) if isinstance(each, int) else each.value for each in given[1:-1]), 0)
            area = QRectF(painter.boundingRect(QRectF(given[0]).toAlignedRect(), flags, what))
        else:
            at = QPointF(given[0])
            area = QRectF(
                at.x(), at.y() - metrics.ascent(), metrics.horizontalAdvance(what), metrics.height()
            )
        note(painter, what, painter.pen().color(), painter.font(), area)

    def layout(self: QTextLayout, painter: QPainter, at: QPointF, *more: Any) -> None:
        for number in range(self.lineCount()):
            line = self.lineAt(number)
            area = line.naturalTextRect().translated(QPointF(at))
            begin, end = line.textStart(), line.textStart() + line.textLength()
            color_at = dict.fromkeys(range(begin, end), painter.pen().color().name())
            for part in self.formats():
                if part.format.foreground().style():
                    for place in range(max(begin, part.start), min(end, part.start + part.length)):
                        color_at[place] = part.format.foreground().color().name()
            for color, places in groupby(range(begin, end), key=color_at.__getitem__):
                run = list(places)
                left, right = (_x(line.cursorToX(place)) for place in (run[0], run[-1] + 1))
                box = QRectF(at.x() + min(left, right), area.top(), abs(right - left), area.height())
                note(painter, self.text()[run[0] : run[-1] + 1], QColor(color), self.font(), box)

    QPainter.drawText = text  # type: ignore[method-assign,assignment]
    QTextLayout.draw = layout  # type: ignore[method-assign,assignment]
    try:
        yield noted
    finally:
        QPainter.drawText = draw_text  # type: ignore[method-assign]
        QTextLayout.draw = draw_layout  # type: ignore[method-assign]

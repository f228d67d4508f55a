"""ParityBoard and DifferenceWindow: where the answers of a drafter differ from the baseline's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QSizePolicy, QTextEdit, QToolTip, QWidget

from app.controls.buttons import Button
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text
from app.controls.text_label import TextLabel
from app.features.lab import strings
from app.features.lab.charts import HEAD_PX
from app.features.side_window import TextView, on_click
from app.session.lab import ChartMark, Parity, common_start, equal_of, parity
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import STRETCH, column_of, row_of, start_at
from app.theme.theme import Theme
from app.theme.zoom import design_point, painter_on, px_size, ratio_of, width_of
from core.events.sweep import SweepResults

_SIZE = (860, 520)


class DifferenceWindow(QDialog):
    """Shows `places` one by one, beginning at index `start`. Deletes itself when closed."""

    def __init__(
        self, theme: Theme, places: Sequence[BoardPlace], start: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(strings.DIFFERENCE_TITLE)
        start_at(self, QSize(*_SIZE))
        self._theme = theme
        self._places = list(places)
        self._at = start
        self.title = TextLabel(theme, "", 13, 17, "text", weight=600)
        self.says = TextLabel(theme, "", 12, 16)
        self.plain = TextView(theme, strings.PLAIN_TEXT, 12, mono=True)
        self.drafted = TextView(theme, strings.DRAFTED_TEXT, 12, mono=True)
        self.previous = Button(theme, strings.PREVIOUS)
        self.next = Button(theme, strings.NEXT)
        close = Button(theme, strings.CLOSE, "primary")
        on_click(
            (self.previous, lambda: self.show_place(self._at - 1)),
            (self.next, lambda: self.show_place(self._at + 1)),
            (close, self.close),
        )
        texts = row_of(
            *(
                (column_of(TextLabel(theme, edit.accessibleName(), 11, 15), (edit, 1), gap=6), 1)
                for edit in (self.plain, self.drafted)
            ),
            gap=16,
        )
        buttons = row_of(self.previous, self.next, STRETCH, close, gap=6)
        column_of(*(self.title, self.says, (texts, 1), buttons), gap=8, margins=(20, 16, 20, 16), parent=self)
        self.show_place(start)

    def show_place(self, number: int) -> None:
        """Shows both texts of an answer at their first difference."""
        self._at = number
        place = self._places[number]
        pair = place.mark.pair
        row, mark = place.row, place.mark
        self.title.setText(strings.mark(row.kind, row.drafter, mark.prompt, mark.number))
        self.says.setText(strings.difference(pair.difference or 0, pair.margin, pair.close_call))
        same = common_start(pair.plain_text, pair.drafted_text)
        for edit, text in ((self.plain, pair.plain_text), (self.drafted, pair.drafted_text)):
            self._show(edit, text, same)
        self.previous.setEnabled(number > 0)
        self.next.setEnabled(number + 1 < len(self._places))

    def _show(self, edit: QPlainTextEdit, text: str, same: int) -> None:
        edit.setPlainText(text or strings.NO_TEXT)
        marked = QTextEdit.ExtraSelection()
        style = QTextCharFormat()
        style.setBackground(QColor(self._theme.color("danger_tint")))
        style.setForeground(QColor(self._theme.color("danger")))
        cursor = QTextCursor(edit.document())
        cursor.setPosition(min(same, len(text)))
        edit.setTextCursor(cursor)
        edit.ensureCursorVisible()
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        marked.cursor, marked.format = cursor, style
        edit.setExtraSelections([marked] if text else [])


_CELLS_PX = (14, 11, 8)  # the largest first
_GAP_PX = 2
_COLUMNS = 3  # enough for few marks
_TALL_PX = 280
_NAMES_PX = 76
_GROUP_GAP_PX = 12
_HEADS_PX = 20
_ROW_GAP_PX = 14


class BoardPlace:
    """The rectangle of a mark."""

    def __init__(self, row: Parity, mark: ChartMark, box: QRectF) -> None:
        self.row = row
        self.mark = mark
        self.box = box

    @property
    def text(self) -> str:
        """Returns the accessible text."""
        name = strings.mark(self.row.kind, self.row.drafter, self.mark.prompt, self.mark.number)
        pair = self.mark.pair
        if pair.difference is None:
            return f"{name}: {strings.SAME}"
        return f"{name}: {strings.difference(pair.difference, pair.margin, pair.close_call)}"


class ParityBoard(QWidget):
    """A board of marks: classes are rows, drafters columns; a group has the runs of its prompts in order."""

    mark_opened = Signal(int)  # the index of the differing answer

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[Parity] = []
        self._equal = (0, 0)
        self._at = -1
        self.setAccessibleName(strings.PARITY)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._ring = FocusRing(self, theme, 6)

    def show_results(self, results: SweepResults | None) -> None:
        self._rows = parity(results) if results else []
        self._equal = equal_of(results) if results else (0, 0)
        self._at = -1
        self._describe()
        self.updateGeometry()
        self.update()

    @property
    def differing(self) -> list[BoardPlace]:
        """The answers that differ from plain decoding."""
        return [place for place in self.places() if not place.mark.pair.equal]

    def places(self) -> list[BoardPlace]:
        """All marks and their rectangles."""
        found = []
        tops, lefts = self._tops(), self._lefts()
        cell, columns = self._grid
        for row in self._rows:
            for number, mark in enumerate(row.marks):
                x = lefts[row.drafter] + number % columns * (cell + _GAP_PX)
                y = tops[row.kind] + number // columns * (cell + _GAP_PX)
                found.append(BoardPlace(row, mark, QRectF(x, y, cell, cell)))
        return found

    def sizeHint(self) -> QSize:
        return px_size(QSize(int(self._extent()[0]), int(self._extent()[1])))

    def minimumSizeHint(self) -> QSize:
        return px_size(QSize(240, int(self._extent()[1])))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            place = self._place_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), place.text if place else "", self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(design_point(event.position()))
        if place is not None:
            self._open(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        places, keys = self.places(), Qt.Key
        steps = {keys.Key_Right: 1, keys.Key_Down: 1, keys.Key_Left: -1, keys.Key_Up: -1}
        if event.key() in steps and places:
            self._at = (self._at + steps[keys(event.key())]) % len(places)
            self._describe(places[self._at].text)
            self.update()
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space) and 0 <= self._at < len(places):
            self._open(places[self._at])
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._at = -1
        self._describe()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color, left = self._theme.color, Qt.AlignmentFlag.AlignLeft
        width = width_of(self)
        draw_text(painter, QRectF(0, 0, width, 18), strings.PARITY, ui_font(13.5, 600), color("text"), left)
        says = strings.identical(*self._equal)
        draw_text(painter, QRectF(0, 19, width, 15), says, ui_font(11), color("text2"), left)
        for drafter, x in self._lefts().items():
            middle = x + self._group_px() / 2
            head = QRectF(middle - self._pitch() / 2, HEAD_PX, self._pitch(), 16)
            draw_text(painter, head, strings.short_drafter_of(drafter), ui_font(11), color("text2"))
        for kind, y in self._tops().items():
            middle = y + self._height_of(kind) / 2
            place = QRectF(0, middle - 9, _NAMES_PX, 18)
            draw_text(painter, place, strings.kind_of(kind), ui_font(12), color("text"), left)
        for number, each in enumerate(self.places()):
            self._paint_mark(painter, each, number == self._at)

    # ---- inside

    def _paint_mark(self, painter: QPainter, place: BoardPlace, chosen: bool) -> None:
        color, box = self._theme.color, place.box
        if place.mark.pair.equal:
            draw_box(painter, box, 3, color("accent_tint"))
            size = max(5, int(box.width()) - 4)
            tick = icon_pixmap("check", color("accent"), size, ratio_of(self))
            painter.drawPixmap(QPointF(box.left() + 2, box.top() + 2), tick)
        else:
            ink = color("series_vermilion")
            draw_box(painter, box, 3, color("window"), ink)
            painter.setPen(QPen(ink, 1.5))
            in_px = box.width() * 0.28
            inner = box.adjusted(in_px, in_px, -in_px, -in_px)
            painter.drawLine(inner.topLeft(), inner.bottomRight())
            painter.drawLine(inner.topRight(), inner.bottomLeft())
        if chosen:
            painter.setPen(QPen(color("accent"), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(-1.5, -1.5, 1.5, 1.5), 4, 4)

    def _describe(self, chosen: str = "") -> None:
        failed = "; ".join(place.text for place in self.differing)
        said = strings.identical(*self._equal)
        self.setAccessibleDescription(chosen or (f"{said}. {failed}" if failed else said))

    def _open(self, place: BoardPlace) -> None:
        for number, each in enumerate(self.differing):
            if each.row is place.row and each.mark is place.mark:
                self.mark_opened.emit(number)

    def _place_at(self, point: QPointF) -> BoardPlace | None:
        return next((place for place in self.places() if place.box.contains(point)), None)

    @property
    def _grid(self) -> tuple[float, int]:
        """Returns the cell size and the cells per row of a group: as large as possible."""
        most = max((len(row.marks) for row in self._rows), default=1)
        names = max(1, len({row.drafter for row in self._rows}))
        kinds = max(1, len({row.kind for row in self._rows}))
        room = (width_of(self) - _NAMES_PX) / names - _GROUP_GAP_PX
        cell, columns = float(_CELLS_PX[-1]), 1
        for size in _CELLS_PX:
            cell, columns = float(size), max(1, min(most, int((room + _GAP_PX) / (size + _GAP_PX))))
            if math.ceil(most / columns) * kinds * (size + _GAP_PX) <= _TALL_PX:
                break
        return cell, min(columns, _COLUMNS) if most <= _COLUMNS * 4 else columns

    def _group_px(self) -> float:
        cell, columns = self._grid
        return columns * (cell + _GAP_PX) - _GAP_PX

    def _drafters(self) -> list[str]:
        return list(dict.fromkeys(row.drafter for row in self._rows))

    def _pitch(self) -> float:
        """Returns the distance between two drafters' columns."""
        room = (width_of(self) - _NAMES_PX) / max(1, len(self._drafters()))
        return max(min(room, 96.0), self._group_px() + _GROUP_GAP_PX)

    def _lefts(self) -> dict[str, float]:
        names, pitch = self._drafters(), self._pitch()
        return {
            name: _NAMES_PX + number * pitch + (pitch - self._group_px()) / 2
            for number, name in enumerate(names)
        }

    def _tops(self) -> dict[str, float]:
        found: dict[str, float] = {}
        y = float(HEAD_PX + _HEADS_PX + 4)
        for kind in dict.fromkeys(row.kind for row in self._rows):
            found[kind] = y
            y += self._height_of(kind) + _ROW_GAP_PX
        return found

    def _height_of(self, kind: str) -> float:
        cell, columns = self._grid
        most = max(len(row.marks) for row in self._rows if row.kind == kind)
        return math.ceil(most / columns) * (cell + _GAP_PX) - _GAP_PX

    def _extent(self) -> tuple[float, float]:
        names = len({row.drafter for row in self._rows})
        places = self.places()
        bottom = max((place.box.bottom() for place in places), default=HEAD_PX + 40.0)
        return _NAMES_PX + names * (self._group_px() + _GROUP_GAP_PX), bottom + _ROW_GAP_PX

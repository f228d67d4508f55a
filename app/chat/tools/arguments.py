"""ArgumentField: shows all of a call's argument, editable, with underlines by the origin of its words.

A plain line: the person's message; dashes: a document; a wave: the result of a tool; dots: the model itself.
Text that the person types in the field has no line. `OriginLegend` explains the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QSizePolicy, QTextEdit, QWidget

from app.chat.tools import strings
from app.controls.buttons import IconButton, on_click
from app.controls.shapes import show_tip
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.richtext.origin_paint import source_color
from app.session.tools.form import Field, spans_after, visible
from app.session.tools.views import ArgumentSpan
from app.theme.fonts import ui_font
from app.theme.measures import column_of, row_of, set_mono_font
from app.theme.theme import color, theme
from app.theme.zoom import design_px, painter_on, px, px_size, width_of

_FONT_PX, _LINE_PX = 12, 19
_MOST_LINES = 12
_LINES = {
    "question": QTextCharFormat.UnderlineStyle.SingleUnderline,
    "document": QTextCharFormat.UnderlineStyle.DashUnderline,
    "result": QTextCharFormat.UnderlineStyle.WaveUnderline,
    "model": QTextCharFormat.UnderlineStyle.DotLine,
}


def origin_color(span: ArgumentSpan) -> str:
    """Palette color of the underline for this origin."""
    if span.origin == "document":
        return source_color(max(0, span.document))
    return {"question": "series_blue", "result": "series_vermilion"}.get(span.origin, "series_grey")


def origin_words(span: ArgumentSpan) -> str:
    """The origin of `span` in words."""
    return strings.origin_words(span.origin, visible(span.name))


class ArgumentArea(TextArea):
    """The text of an argument. It is as high as its lines, `_MOST_LINES` at most; then it scrolls."""

    def __init__(self, field: Field, spans: Sequence[ArgumentSpan], parent: QWidget | None = None) -> None:
        super().__init__(parent, font_px=_FONT_PX, line_px=_LINE_PX)
        set_mono_font(self, _FONT_PX)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.spans = list(spans)
        self._heights: dict[int, int] = {}  # by width, until the text changes
        self.is_measuring = False
        self.document().documentLayout().documentSizeChanged.connect(self._forget_heights)
        self.set_value(field.text)
        self._before = self._unedited = self.value
        self.value_changed.connect(self._edited)
        theme.changed.connect(self._underline)
        self._underline()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            document = self.document()
            before, self.is_measuring = document.textWidth(), True
            self._heights[width] = self.height_for(width, _MOST_LINES)
            document.setTextWidth(before)
            self.is_measuring = False
        return self._heights[width]

    def minimumSizeHint(self) -> QSize:
        return QSize(px(80), px(_LINE_PX))

    def span_at(self, position: int) -> ArgumentSpan | None:
        """The span of the character at that offset of the value."""
        return next((each for each in self.spans if each.start <= position < each.end), None)

    @property
    def spoken(self) -> str:
        """The text for assistive technology: each run of words with its origin."""
        value = self.value
        return ". ".join(
            strings.spoken_origin(value[each.start : each.end], origin_words(each))
            for each in self.spans
            if value[each.start : each.end].strip()
        )

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            at = self.viewport().mapFrom(self, event.pos())
            units = self.cursorForPosition(at).position()
            span = self.span_at(_characters(self.value, units))
            show_tip(event, self, origin_words(span) if span else "")
            return True
        return super().event(event)

    def show_spans(self, spans: Sequence[ArgumentSpan]) -> None:
        """Show the origins of the unedited text."""
        moved = spans_after([(each.start, each.end) for each in spans], self._unedited, self.value)
        self.spans = [replace(spans[number], start=start, end=end) for number, start, end in moved]
        self._underline()

    def _forget_heights(self) -> None:
        if not self.is_measuring:
            self._heights.clear()

    def _edited(self, value: str) -> None:
        moved = spans_after([(each.start, each.end) for each in self.spans], self._before, value)
        self._before = value
        self.spans = [replace(self.spans[number], start=start, end=end) for number, start, end in moved]
        self._underline()

    def _underline(self) -> None:
        self.setExtraSelections([self._selection(each) for each in self.spans])
        self.setAccessibleDescription(self.spoken)

    def _selection(self, span: ArgumentSpan) -> QTextEdit.ExtraSelection:
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.document())
        cursor.setPosition(_units(self.value[: span.start]))
        end = cursor.position() + _units(self.value[span.start : span.end])
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        form = QTextCharFormat()
        form.setUnderlineStyle(_LINES[span.origin])
        form.setUnderlineColor(color(origin_color(span)))
        if span.origin == "result":  # the text of a result may be an attacker's
            form.setBackground(color("danger_tint"))
        selection.cursor = cursor
        selection.format = form
        return selection


def _units(text: str) -> int:
    """The length of `text` in a Qt document, which counts UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def _characters(text: str, units: int) -> int:
    """Number of characters of `text` before the UTF-16 unit `units`."""
    count = 0
    for character in text:
        units -= 2 if character > "\uffff" else 1
        if units < 0:
            break
        count += 1
    return count


_NAME_GAP_PX = 6


class ArgumentField(QWidget):
    """`changed` is called after an edit, `resized` when its height may change, `remove` by its button."""

    def __init__(
        self,
        field: Field,
        spans: Sequence[ArgumentSpan],
        changed: Callable[[], object],
        resized: Callable[[], object],
        remove: Callable[[], object] | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.field = field
        name = visible(field.name)
        self.area = ArgumentArea(field, spans, self)
        self.area.setAccessibleName(f"{name}, {strings.REQUIRED}" if field.required else name)
        self.problem = TextLabel("", 11, 15, "danger", wrap=True, parent=self)
        self.problem.hide()
        self._resized = resized
        label = TextLabel(name, 12, 16, "text", weight=600)
        says = " ".join(visible(field.says).split())
        note = TextLabel(says, 11, 15, "text2")
        note.setToolTip(says)
        head = row_of(label, (note, 1), gap=_NAME_GAP_PX)
        if remove is not None:
            button = IconButton("x", strings.REMOVE_ARGUMENT.format(name=name), size=QSize(20, 18))
            on_click((button, remove))
            head.addWidget(button)
        column_of(head, self.area, self.problem, gap=3, parent=self)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.area.value_changed.connect(lambda value: changed())
        self.area.resized.connect(self._changed_height)

    @property
    def text(self) -> str:
        return self.area.value

    def show_problem(self, words: str) -> None:
        """Show an error in the text; empty: none."""
        if words == self.problem.text():
            return
        self.problem.setText(words)
        self.problem.setVisible(bool(words))
        self.problem.updateGeometry()
        self._resized()

    def _changed_height(self) -> None:
        if not self.area.is_measuring:
            self.area.updateGeometry()
            self._resized()


_SAMPLE_PX, _SAMPLE_GAP_PX, _ITEM_GAP_PX = 22, 6, 16
_LEGEND_LINE_PX = 18


class OriginLegend(QWidget):
    """Legend of the underlines, in as many rows as needed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._origins: tuple[ArgumentSpan, ...] = ()
        self._edited = False
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self.updateGeometry)
        self.hide()

    def show_origins(self, spans: Iterable[ArgumentSpan], *, edited: bool) -> None:
        """Show the origins of `spans`. `edited`: fields have typed text, which has no line."""
        self._origins = tuple({(each.origin, each.name): each for each in spans}.values())
        self._edited = edited
        self.setAccessibleName(strings.legend([words for _, words in self._items]))
        self.setVisible(bool(self._items))
        self.updateGeometry()
        self.update()

    @property
    def text(self) -> str:
        """The legend as text, without the lines."""
        return self.accessibleName()

    @property
    def _items(self) -> list[tuple[ArgumentSpan | None, str]]:
        items: list[tuple[ArgumentSpan | None, str]] = [(each, origin_words(each)) for each in self._origins]
        return [*items, (None, strings.YOURS)] if self._edited else items

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        rows = self._placed(design_px(width))
        return px(_LEGEND_LINE_PX * (1 + max((row for _, row, _, _ in rows), default=0)))

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, _LEGEND_LINE_PX))

    def _placed(self, width: float) -> list[tuple[float, int, ArgumentSpan | None, str]]:
        """Left edge, row and content of each item in a legend of `width` design pixels."""
        metrics = QFontMetricsF(ui_font(11))
        found: list[tuple[float, int, ArgumentSpan | None, str]] = []
        left, row = 0.0, 0
        for origin, words in self._items:
            sample_px = _SAMPLE_PX + _SAMPLE_GAP_PX if origin else 0
            item_px = sample_px + metrics.horizontalAdvance(words)
            if left and left + item_px > width:
                left, row = 0.0, row + 1
            found.append((left, row, origin, words))
            left += item_px + _ITEM_GAP_PX
        return found

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.setFont(ui_font(11))
        for left, row, origin, words in self._placed(width_of(self)):
            box = QRectF(left, row * _LEGEND_LINE_PX, width_of(self) - left, _LEGEND_LINE_PX)
            if origin is not None:
                sample = QPointF(left, box.center().y() + 3)
                if origin.origin == "result":
                    painter.fillRect(QRectF(left, box.top() + 3, _SAMPLE_PX, 13), color("danger_tint"))
                draw_line(painter, sample, _SAMPLE_PX, origin.origin, color(origin_color(origin)))
                box.setLeft(left + _SAMPLE_PX + _SAMPLE_GAP_PX)
            painter.setPen(color("text2"))
            painter.drawText(box, int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), words)
        painter.end()


_PEN_PX = 1.3
_WAVE_PX, _WAVE_HEIGHT_PX = 4.0, 1.6


def draw_line(painter: QPainter, start: QPointF, length_px: float, kind: str, ink: QColor) -> None:
    """Draw the line of an origin of that kind from `start` to the right."""
    pen = QPen(ink, _PEN_PX)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if kind == "result":
        painter.setPen(pen)
        path = QPainterPath(start)
        for step in range(int(length_px / _WAVE_PX)):
            left = start.x() + step * _WAVE_PX
            up = _WAVE_HEIGHT_PX if step % 2 else -_WAVE_HEIGHT_PX
            path.quadTo(QPointF(left + _WAVE_PX / 2, start.y() + 2 * up), QPointF(left + _WAVE_PX, start.y()))
        painter.drawPath(path)
        return
    dashes = {"document": [3.0, 2.0], "model": [1.0, 1.6]}.get(kind)
    if dashes:
        pen.setDashPattern(dashes)
    painter.setPen(pen)
    painter.drawLine(start, QPointF(start.x() + length_px, start.y()))

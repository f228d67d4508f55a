"""ReadingCard: progress of the prefill, shown in place of the answer until its first token.

A dense prefill has a progress bar. A sparse prefill has three phases, the reading map, Read Everything and
Cancel as well, so the card is higher.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import reading_map, strings
from app.chat.intents import Intent, OpenPassage, ReadEverything, StopAnswer
from app.chat.reading_map import (
    MapCell,
    ReadingFacts,
    cell_color,
    dense_estimate,
    draw_map,
    read_so_far,
    reads_on,
)
from app.chat.reading_state import Label, ReadingState, now_s
from app.controls.buttons import Button, on_click
from app.controls.shapes import draw_box, draw_text
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import color, theme
from app.theme.zoom import (
    design_point,
    design_px,
    design_size,
    painter_on,
    place,
    px_size,
    ratio_of,
    width_of,
)
from core.events import Passage, PrefillProgress, ReadingMap

STRIP_PX = 40
# The playhead is longer than the strip at both ends.
_OUT_PX = 4
_LABELS_PX = 18
_LABEL_GAP_PX = 12


class ReadingMapStrip(QWidget):
    """The prompt as a strip with its headings below. While passages are scored, the scored part is grey.

    `open_passage` gets the passage at a click.
    """

    HEIGHT_PX = _OUT_PX + STRIP_PX + _OUT_PX + _LABELS_PX

    def __init__(self, open_passage: Callable[[Passage], object], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._open_passage = open_passage
        self._reading: ReadingMap | None = None
        self._labels: tuple[Label, ...] = ()
        self._read_tokens = 0
        self._scored = 0.0
        self._cells: list[MapCell] | None = None
        self.setAccessibleName(strings.MAP_NAME)

    def show_scoring(self, fraction: float) -> None:
        """Show the scored fraction of the prompt."""
        self._scored = fraction
        self._invalidate()

    def show_map(self, reading: ReadingMap, labels: tuple[Label, ...] = ()) -> None:
        """Show the selected passages and the headings."""
        self._reading, self._labels = reading, labels
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._invalidate()

    def show_read(self, read_tokens: int) -> None:
        """Show how many of the kept tokens have been read."""
        self._read_tokens = read_tokens
        self._invalidate()

    def sizeHint(self) -> QSize:
        return px_size(QSize(680, self.HEIGHT_PX))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._reading is not None and event.button() == Qt.MouseButton.LeftButton:
            passage = reading_map.passage_at(
                self._reading, design_point(event.position()).x() / max(1, width_of(self))
            )
            if passage is not None:
                self._open_passage(passage)

    def resizeEvent(self, event: object) -> None:
        self._invalidate()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        strip = QRectF(0, _OUT_PX, width_of(self), STRIP_PX)
        if self._cells is None or len(self._cells) != self._columns():
            self._cells = self._make_cells()
        draw_map(painter, strip, self._cells)
        if self._reading is None:
            return
        self._paint_labels(painter, strip)
        if self._read_tokens < self._reading.read_tokens:
            x = reading_map.playhead(self._reading, self._read_tokens) * width_of(self)
            line = QRectF(x - 1, 0, 2, STRIP_PX + 2 * _OUT_PX)
            painter.fillRect(line.adjusted(-1.5, 0, 1.5, 0), color("raised"))
            painter.fillRect(line, color("text"))

    def _paint_labels(self, painter: QPainter, strip: QRectF) -> None:
        font = ui_font(10.5, tabular=True)
        metrics = QFontMetricsF(font)
        free_from = 0.0
        top = strip.bottom() + _OUT_PX
        for where, words in self._labels:
            x = where * width_of(self)
            width = metrics.horizontalAdvance(words) + 5
            if x < free_from or x + width > width_of(self):
                continue
            painter.setPen(color("hair2"))
            painter.drawLine(QPointF(x + 0.5, top), QPointF(x + 0.5, top + 5))
            box = QRectF(x + 5, top + 1, width, 15)
            draw_text(painter, box, words, font, color("text2"), Qt.AlignmentFlag.AlignLeft)
            free_from = x + width + _LABEL_GAP_PX

    def _columns(self) -> int:
        """One column per device pixel."""
        return max(1, round(width_of(self) * ratio_of(self)))

    def _make_cells(self) -> list[MapCell]:
        width = self._columns()
        if self._reading is None:
            done = round(width * self._scored)
            return [MapCell("skipped", 0.3)] * done + [MapCell("empty")] * (width - done)
        return reading_map.cells(self._reading.passages, width, self._read_tokens)

    def _invalidate(self) -> None:
        self._cells = None
        self.update()


_CARD_PX = 95
_SPARSE_CARD_PX = 304
_NOTE_PX = 28
_PAD_X_PX = 21
_PHASES_PX = 93
_STRIP_PX = 138
_LEGEND_PX = 213
_LINE_PX = 244
_BUTTONS_PX = 259
_PHASE_GAP_PX = 30
_LEFT = Qt.AlignmentFlag.AlignLeft
_RIGHT = Qt.AlignmentFlag.AlignRight


class ReadingCard(QWidget):
    """`height_px` may change with `show_progress` and `show_map`. `act` gets the person's intents.

    Between two events the remaining time is counted on each second. `now`: the steady clock.
    """

    def __init__(
        self,
        turn_id: str,
        act: Callable[[Intent], object],
        parent: QWidget | None = None,
        *,
        state: ReadingState | None = None,
        now: Callable[[], float] = now_s,
    ) -> None:
        """Shows `state`, by default a new one. Call `refresh()` after it was changed elsewhere."""
        super().__init__(parent)
        self._now = now
        self._state = state or ReadingState()
        self._limit_tokens = 0
        self.facts: ReadingFacts | None = None
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._show_facts)
        self.strip = ReadingMapStrip(lambda passage: act(OpenPassage(passage)), self)
        self.everything_button = Button(strings.READ_EVERYTHING, parent=self)
        self.cancel_button = Button(strings.CANCEL, parent=self)
        on_click(
            (self.everything_button, lambda: act(ReadEverything(turn_id))),
            (self.cancel_button, lambda: act(StopAnswer())),
        )
        self._sparse_parts = (self.strip, self.everything_button, self.cancel_button)
        for part in self._sparse_parts:
            part.hide()
        theme.zoomed.connect(self._arrange)

    @property
    def height_px(self) -> int:
        """The current height in design pixels."""
        return (_SPARSE_CARD_PX if self.is_sparse else _CARD_PX) + _NOTE_PX

    @property
    def is_sparse(self) -> bool:
        return bool(self.facts and self.facts.phases)

    def show_progress(self, progress: PrefillProgress) -> None:
        self._state.show_progress(progress, self._now())
        self.refresh()

    def show_map(self, reading: ReadingMap, labels: tuple[Label, ...] = ()) -> None:
        """Show which passages will be read."""
        self._state.show_map(reading, labels, self._now())
        self.refresh()

    def refresh(self) -> None:
        """Show the state, which was changed."""
        state = self._state
        if state.reading is not None:
            self.strip.show_map(state.reading, state.labels)
        if state.progress is not None:
            self._clock.start()
            if state.progress.phase == "scoring":
                self.strip.show_scoring(state.progress.scored_tokens / max(1, state.progress.total_tokens))
            else:
                self.strip.show_read(read_so_far(state.progress))
        self._show_facts()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        facts = self.facts
        if facts is None:
            return
        painter = painter_on(self)
        card = QRectF(0, 0, width_of(self), self.height_px - _NOTE_PX)
        draw_box(painter, card, 12, color("raised"), color("hair"))
        left, width = _PAD_X_PX, width_of(self) - 2 * _PAD_X_PX
        line = QRectF(left, 17, width, 20)
        draw_text(painter, line, facts.title, ui_font(15, 600, tabular=True), color("text"), _LEFT)
        draw_text(painter, line, facts.left, ui_font(13, tabular=True), color("text2"), _RIGHT)
        draw_box(painter, QRectF(left, 50, width, 6), 3, color("fill2"))
        if facts.fraction > 0:
            bar = QRectF(left, 50, max(6.0, width * facts.fraction), 6)
            draw_box(painter, bar, 3, color("accent_fill"))
        line = QRectF(left, 63, width, 15)
        small = ui_font(11, tabular=True)
        draw_text(painter, line, facts.done, small, color("text2"), _LEFT)
        draw_text(painter, line, f"{int(100 * facts.fraction)}%", small, color("text2"), _RIGHT)
        if facts.phases:
            self._paint_phases(painter, facts)
            self._paint_legend(painter)
            painter.fillRect(QRectF(left, _LINE_PX, width, 1), color("hair"))
            self._paint_estimate(painter)
        note = QRectF(0, card.bottom() + 12, width_of(self), 16)
        draw_text(painter, note, strings.READING_NOTE, ui_font(12), color("text2"), _LEFT)

    # ---- inside

    def set_context_limit(self, tokens: int) -> None:
        """Set what the context holds, which decides whether all fits until the map is known; 0: unknown."""
        self._limit_tokens = tokens
        self._show_facts()

    @property
    def _all_fits(self) -> bool:
        """Whether the context holds the whole prompt."""
        reading, progress = self._reading, self._progress
        if reading is not None or progress is None:
            return reading is None or reading.all_fits
        prompt_tokens = progress.total_tokens + progress.reused_tokens
        return not self._limit_tokens or prompt_tokens < self._limit_tokens

    @property
    def _reading(self) -> ReadingMap | None:
        return self._state.reading

    @property
    def _progress(self) -> PrefillProgress | None:
        return self._state.progress

    def _show_facts(self) -> None:
        facts = self._state.facts(self._now())
        if facts is None:
            return
        self.facts = facts
        for part in self._sparse_parts:
            part.setVisible(self.is_sparse)
        self.everything_button.setVisible(self.is_sparse and self._all_fits)
        self.setAccessibleName(facts.title)
        phases = ", ".join(f"{p.title}: {p.note}" for p in facts.phases if p.note)
        self.setAccessibleDescription(" ".join(part for part in (facts.left, phases) if part))
        self.everything_button.setAccessibleDescription(self._estimate())
        self._arrange()
        self.update()

    def _arrange(self) -> None:
        width = width_of(self) - 2 * _PAD_X_PX
        place(self.strip, _PAD_X_PX, _STRIP_PX, width, ReadingMapStrip.HEIGHT_PX)
        size = design_size(self.everything_button.sizeHint())
        place(self.everything_button, _PAD_X_PX, _BUTTONS_PX, size.width(), size.height())
        size = design_size(self.cancel_button.sizeHint())
        left = width_of(self) - _PAD_X_PX - size.width()
        place(self.cancel_button, left, _BUTTONS_PX, size.width(), size.height())

    def _paint_phases(self, painter: QPainter, facts: ReadingFacts) -> None:
        title_font, note_font = ui_font(12, 500), ui_font(11, tabular=True)
        metrics = QFontMetricsF(title_font), QFontMetricsF(note_font)
        widths = [
            25 + max(metrics[0].horizontalAdvance(phase.title), metrics[1].horizontalAdvance(phase.note))
            for phase in facts.phases
        ]
        room = width_of(self) - 2 * _PAD_X_PX - (len(widths) - 1) * _PHASE_GAP_PX
        if sum(widths) > room:  # each has a part of it, so that none is without its words
            widths = [room / len(widths)] * len(widths)
        x = float(_PAD_X_PX)
        for phase, width in zip(facts.phases, widths):
            dot = QRectF(x, _PHASES_PX + 8, 16, 16)
            if phase.state == "done":
                draw_box(painter, dot, 8, color("accent_tint"))
                icon = icon_pixmap("check", color("accent"), 10, ratio_of(self))
                painter.drawPixmap(QPointF(dot.left() + 3, dot.top() + 3), icon)
            else:
                ring = color("accent" if phase.state == "active" else "hair2")
                painter.setPen(QPen(ring, 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(dot.adjusted(1, 1, -1, -1))
            ink = color("text" if phase.state != "ahead" else "text2")
            top = _PHASES_PX if phase.note else _PHASES_PX + 8
            draw_text(painter, QRectF(x + 24, top, width - 24, 16), phase.title, title_font, ink, _LEFT)
            note = QRectF(x + 24, _PHASES_PX + 16, width - 24, 15)
            draw_text(painter, note, phase.note, note_font, color("text2"), _LEFT)
            x += width + _PHASE_GAP_PX

    def _paint_legend(self, painter: QPainter) -> None:
        font = ui_font(11)
        x = float(_PAD_X_PX)
        earlier = [(strings.KEY_EARLIER, MapCell("earlier"))]
        for words, cell in (
            (strings.KEY_READ, MapCell("read")),
            (strings.KEY_KEPT, MapCell("kept")),
            *(earlier if self._reading and reads_on(self._reading) else []),
            (strings.KEY_SKIPPED, MapCell("skipped", 0.5)),
        ):
            draw_box(painter, QRectF(x, _LEGEND_PX + 2.5, 10, 10), 2, cell_color(cell))
            width = QFontMetricsF(font).horizontalAdvance(words) + 1
            draw_text(painter, QRectF(x + 16, _LEGEND_PX, width, 15), words, font, color("text2"), _LEFT)
            x += 16 + width + 16
        if self._reading is None:
            return
        hint = QRectF(x, _LEGEND_PX, width_of(self) - _PAD_X_PX - x, 15)
        draw_text(painter, hint, strings.MAP_HINT, font, color("text2"), _RIGHT)

    def _paint_estimate(self, painter: QPainter) -> None:
        button = self.everything_button
        left = _PAD_X_PX if button.isHidden() else design_px(button.geometry().right()) + 9
        available = design_px(self.cancel_button.x()) - 9 - left
        box = QRectF(left, _BUTTONS_PX, available, 28)
        draw_text(painter, box, self._estimate(), ui_font(12, tabular=True), color("text2"), _LEFT)

    def _estimate(self) -> str:
        if self._progress is None:
            return ""
        if not self._all_fits:
            return strings.MORE_THAN_FITS
        tokens = self._reading.prompt_tokens if self._reading else self._progress.total_tokens
        return dense_estimate(tokens, self._reading.dense_s if self._reading else None)

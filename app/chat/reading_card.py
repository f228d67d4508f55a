"""ReadingCard: progress of the prefill, shown in place of the answer until its first token.

A dense prefill has a progress bar. A sparse prefill has three phases, the reading map, Read Everything and
Cancel as well, so the card is higher.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.chat import reading_map, strings
from app.chat.intents import Intent, OpenPassage, ReadEverything, StopAnswer
from app.chat.reading_map import (
    MapCell,
    PhaseState,
    ReadingFacts,
    ReadingPhase,
    cell_color,
    dense_estimate,
    draw_map,
    read_so_far,
    reads_on,
)
from app.chat.reading_state import Label, ReadingState, now_s
from app.controls.buttons import Button, on_click
from app.controls.shapes import draw_box, draw_text
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height
from app.theme.sheet import set_ground
from app.theme.theme import color
from app.theme.zoom import area_of, design_point, painter_on, px, px_size, ratio_of, width_of
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
        set_fixed_height(self, self.HEIGHT_PX)

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


_NOTE_PX = 28  # below the card
_PAD_X_PX = 21
_LEAST_PHASE_PX = 110  # of its words, where it has more
_KEYS = (
    (strings.KEY_READ, MapCell("read")),
    (strings.KEY_KEPT, MapCell("kept")),
    (strings.KEY_EARLIER, MapCell("earlier")),
    (strings.KEY_SKIPPED, MapCell("skipped", 0.5)),
)
_RIGHT = Qt.AlignmentFlag.AlignRight


class _Bar(QWidget):
    """The share `fraction`, 0 to 1, as a bar."""

    def __init__(self) -> None:
        super().__init__()
        self.fraction = 0.0
        set_fixed_height(self, 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, area = painter_on(self), area_of(self)
        draw_box(painter, area, 3, color("fill2"))
        if self.fraction > 0:
            area.setWidth(max(6.0, area.width() * self.fraction))
            draw_box(painter, area, 3, color("accent_fill"))


class _Phase(QWidget):
    """A phase: its mark, its title and a note below it."""

    def __init__(self) -> None:
        super().__init__()
        self._state: PhaseState = "ahead"
        self._title = TextLabel("", 12, 16, weight=500)
        self._note = TextLabel("", 11, 15, tabular=True)
        set_fixed_height(self, 31)
        column_of(STRETCH, self._title, self._note, STRETCH, margins=(24, 0, 0, 0), parent=self)

    def show_phase(self, phase: ReadingPhase) -> None:
        self._state = phase.state
        self._title.setText(phase.title)
        self._title.set_color("text2" if phase.state == "ahead" else "text")
        self._note.setText(phase.note)
        self._note.setVisible(bool(phase.note))
        self.update()

    def minimumSizeHint(self) -> QSize:
        hint = self.sizeHint()
        return hint.boundedTo(QSize(px(_LEAST_PHASE_PX), hint.height()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, dot = painter_on(self), QRectF(0, 8, 16, 16)
        if self._state == "done":
            draw_box(painter, dot, 8, color("accent_tint"))
            icon = icon_pixmap("check", color("accent"), 10, ratio_of(self))
            painter.drawPixmap(QPointF(dot.left() + 3, dot.top() + 3), icon)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color("accent" if self._state == "active" else "hair2"), 2))
        painter.drawEllipse(dot.adjusted(1, 1, -1, -1))


class _Key(QWidget):
    """Legend of one colour of the map."""

    def __init__(self, words: str, cell: MapCell) -> None:
        super().__init__()
        self._cell = cell
        row_of(TextLabel(words, 11, 15), margins=(16, 0, 0, 0), parent=self)

    def paintEvent(self, event: QPaintEvent) -> None:
        draw_box(painter_on(self), QRectF(0, 2.5, 10, 10), 2, cell_color(self._cell))


class ReadingCard(QWidget):
    """Its height may change with `show_progress` and `show_map`. `act` gets the person's intents.

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
        self._title = TextLabel("", 15, 20, "text", weight=600, tabular=True)
        self._left = TextLabel("", 13, 20, tabular=True, align=_RIGHT)
        self._bar = _Bar()
        self._done = TextLabel("", 11, 15, tabular=True)
        self._percent = TextLabel("", 11, 15, tabular=True, align=_RIGHT)
        # Phases of a sparse prefill.
        self._phases = [_Phase() for _ in range(3)]
        self.strip = ReadingMapStrip(lambda passage: act(OpenPassage(passage)))
        self._keys = [_Key(*key) for key in _KEYS]
        self._hint = TextLabel(strings.MAP_HINT, 11, 15, align=_RIGHT)
        self.everything_button = Button(strings.READ_EVERYTHING)
        self._estimate = TextLabel("", 12, 28, tabular=True)
        self.cancel_button = Button(strings.CANCEL)
        on_click(
            (self.everything_button, lambda: act(ReadEverything(turn_id))),
            (self.cancel_button, lambda: act(StopAnswer())),
        )
        line = QWidget()
        set_ground(line, "hair")
        set_fixed_height(line, 1)
        self._sparse = QWidget()
        column_of(
            *(15, row_of(*self._phases, STRETCH, gap=30)),
            *(14, self.strip, 9, row_of(*self._keys, (self._hint, 1), gap=16)),
            *(16, line),
            *(14, row_of(self.everything_button, (self._estimate, 1), self.cancel_button, gap=9)),
            parent=self._sparse,
        )
        self._sparse.hide()
        card = column_of(
            row_of(self._title, (self._left, 1), gap=16),
            *(13, self._bar, 7, row_of((self._done, 1), self._percent, gap=16)),
            self._sparse,
            margins=(_PAD_X_PX, 17, _PAD_X_PX, 17),
        )
        self._column = column_of(card, 12, TextLabel(strings.READING_NOTE, 12, 16), parent=self)

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

    def set_context_limit(self, tokens: int) -> None:
        """Set what the context holds, which decides whether all fits until the map is known; 0: unknown."""
        self._limit_tokens = tokens
        self._show_facts()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.facts is not None:
            card = area_of(self).adjusted(0, 0, 0, -_NOTE_PX)
            draw_box(painter_on(self), card, 12, color("raised"), color("hair"))

    # ---- inside

    @property
    def _all_fits(self) -> bool:
        """Whether the context holds the whole prompt."""
        reading, progress = self._state.reading, self._state.progress
        if reading is not None or progress is None:
            return reading is None or reading.all_fits
        prompt_tokens = progress.total_tokens + progress.reused_tokens
        return not self._limit_tokens or prompt_tokens < self._limit_tokens

    def _show_facts(self) -> None:
        facts = self._state.facts(self._now())
        if facts is None:
            return
        self.facts = facts
        self._title.setText(facts.title)
        self._left.setText(facts.left)
        self._bar.fraction = facts.fraction
        self._bar.update()
        self._done.setText(facts.done)
        self._percent.setText(f"{int(100 * facts.fraction)}%")
        if self.is_sparse:
            self._show_sparse(facts)
        self._sparse.setVisible(self.is_sparse)
        self._column.activate()  # so that the height is known now
        self.setAccessibleName(facts.title)
        phases = ", ".join(f"{p.title}: {p.note}" for p in facts.phases if p.note)
        self.setAccessibleDescription(" ".join(part for part in (facts.left, phases) if part))
        self.update()

    def _show_sparse(self, facts: ReadingFacts) -> None:
        reading = self._state.reading
        for shown, phase in zip(self._phases, facts.phases, strict=True):
            shown.show_phase(phase)
        self._keys[2].setVisible(reading is not None and reads_on(reading))
        self._hint.setText("" if reading is None else strings.MAP_HINT)
        self.everything_button.setVisible(self._all_fits)
        words = self._words_of_all()
        self.everything_button.setAccessibleDescription(words)
        self._estimate.setText(words)

    def _words_of_all(self) -> str:
        """Tokens and time of reading everything, in words."""
        progress, reading = self._state.progress, self._state.reading
        if progress is None:
            return ""
        if not self._all_fits:
            return strings.MORE_THAN_FITS
        tokens = reading.prompt_tokens if reading else progress.total_tokens
        return dense_estimate(tokens, reading.dense_s if reading else None)

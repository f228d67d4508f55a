"""AnswerFooter: strip, figures, what was not done as asked, and actions under an answer.

Its parts stand at fixed distances; the room of actions that are not shown is kept, so that
nothing jumps when the mouse comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import action_button, strings, token_strip
from app.chat.action_button import ActionButton
from app.chat.sources import Source
from app.chat.stats_line import StatsLabel, StatsPart
from app.chat.token_strip import TokenStrip
from app.controls.buttons.button import Button
from app.controls.focus_ring import FocusRing
from app.controls.text_label import TextLabel
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_point, painter_on, px, px_size, ratio_of, width_of
from core.events import Token

_HEIGHT_PX = 24
_ARROW_PX = 20
_ICON_PX = 16
_SIZE_PX = 11


class VersionSwitch(QWidget):
    """Hidden while there is one version only. ← and → go from one to the next; so do clicks."""

    version_requested = Signal(int)  # the place of another version, from 0

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._place, self._count = 0, 1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, theme, 5.0)
        theme.changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """What stands between the arrows."""
        return f"{self._place + 1}/{self._count}"

    def show_version(self, place: int, count: int) -> None:
        """The one at `place` of `count` is shown."""
        self._place, self._count = place, count
        words = strings.VERSION.format(place=place + 1, count=count)
        self.setAccessibleName(words)
        self.setToolTip(f"{words}. {strings.VERSION_KEYS}")
        self.setVisible(count > 1)
        self.updateGeometry()
        self.update()

    def step(self, by: int) -> None:
        """Ask for the version before or after, if there is one."""
        place = self._place + by
        if self.isEnabled() and 0 <= place < self._count:
            self.version_requested.emit(place)

    def sizeHint(self) -> QSize:
        words_px = QFontMetricsF(ui_font(_SIZE_PX, tabular=True)).horizontalAdvance(self.text)
        return px_size(QSize(round(words_px) + 2 * _ARROW_PX, _HEIGHT_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.step(-1 if event.key() == Qt.Key.Key_Left else 1)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.step(-1 if design_point(event.position()).x() < width_of(self) / 2 else 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        for icon, left, is_way in (
            ("left", 0, self._place > 0),
            ("right", width_of(self) - _ARROW_PX, self._place + 1 < self._count),
        ):
            ink = self._theme.color("text2" if is_way and self.isEnabled() else "text3")
            pixmap = icon_pixmap(icon, ink, _ICON_PX, ratio_of(self))
            painter.drawPixmap(
                QPointF(left + (_ARROW_PX - _ICON_PX) // 2, (_HEIGHT_PX - _ICON_PX) // 2), pixmap
            )
        painter.setFont(ui_font(_SIZE_PX, tabular=True))
        painter.setPen(self._theme.color("text2"))
        painter.drawText(area_of(self), Qt.AlignmentFlag.AlignCenter, self.text)
        painter.end()


HEIGHT_PX = 24
_GAP_PX = 2
_TIP_CHARACTERS = 400


class SourcesRow(QWidget):
    """Hidden where there are none."""

    source_chosen = Signal(object)  # Source

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._title = TextLabel(theme, strings.SOURCES, 11, 16, "text2", parent=self)
        self.buttons: list[Button] = []
        self.hide()
        theme.zoomed.connect(self._arrange)

    def show_sources(self, sources: tuple[Source, ...]) -> None:
        """The best first."""
        for number, source in enumerate(sources, start=1):
            button = Button(self._theme, f"{number}", "link", True, self)
            words = (
                source.words if len(source.words) <= _TIP_CHARACTERS else source.words[:_TIP_CHARACTERS] + "…"
            )
            # As rich text, long words are broken into lines of a readable length.
            button.setToolTip(f"<p><b>{escape(source.name)}</b><br>{escape(words)}</p>")
            button.setAccessibleName(strings.OPEN_SOURCE.format(number=number))
            button.setAccessibleDescription(f"{source.name}: {words}")
            button.clicked.connect(partial(self.source_chosen.emit, source))
            self.buttons.append(button)
            button.show()
        self._arrange()
        self.setVisible(bool(sources))

    def _arrange(self) -> None:
        left = self._title.sizeHint().width() + px(_GAP_PX)
        self._title.setGeometry(0, px(4), left, px(16))
        for button in self.buttons:
            size = button.sizeHint()
            button.setGeometry(left, (px(HEIGHT_PX) - size.height()) // 2, size.width(), size.height())
            left += size.width() + px(_GAP_PX)
        self.setFixedWidth(left)


_STRIP_BOTTOM_PX = token_strip.REACH_PX + token_strip.HEIGHT_PX
_STATS_GAP_PX = 7
_NOTE_GAP_PX = 2
_ACTIONS_GAP_PX = 3
_ACTIONS_LEFT_PX = -6
_ACTION_PITCH_PX = 28
_EVERYTHING_GAP_PX = 8
_ESTIMATE_GAP_PX = 4


class AnswerFooter(QWidget):
    """Starts `token_strip.REACH_PX` above the strip."""

    copy_requested = Signal()
    regenerate_requested = Signal()
    everything_requested = Signal()
    more_requested = Signal()
    branch_requested = Signal()
    source_chosen = Signal(object)  # Source
    version_requested = Signal(int)  # its place
    compare_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._copies_only = False
        self.strip = TokenStrip(theme, self)
        self.stats = StatsLabel(theme, self)
        self.sources = SourcesRow(theme, self)
        self._notes: list[TextLabel] = []
        self._copy = ActionButton(theme, "copy", strings.COPY_ANSWER, self)
        self._again = ActionButton(theme, "redo", strings.REGENERATE, self)
        self.versions = VersionSwitch(theme, self)
        self.compare_button = Button(theme, strings.COMPARE, "link", True, self)
        self.compare_button.hide()
        self.versions.version_requested.connect(self.version_requested)
        self.compare_button.clicked.connect(self.compare_requested)
        self.more_button = Button(theme, strings.CONTINUE, "link", True, self)
        self.everything_button = Button(theme, strings.READ_EVERYTHING, "link", True, self)
        self._estimate = TextLabel(theme, "", 11, 16, "text2", tabular=True, parent=self)
        self.more_button.hide()
        self.everything_button.hide()
        self._estimate.hide()
        self._branch = ActionButton(theme, "branch", strings.BRANCH, self)
        self._finished = False
        self.more_button.clicked.connect(self.more_requested)
        self.everything_button.clicked.connect(self.everything_requested)
        self._copy.clicked.connect(self.copy_requested)
        self._copy.clicked.connect(self._copy.show_done)
        self._again.clicked.connect(self.regenerate_requested)
        self._branch.clicked.connect(self.branch_requested)
        self.sources.source_chosen.connect(self.source_chosen)
        for button in self.buttons:
            button.hide()

    @property
    def buttons(self) -> tuple[ActionButton, ...]:
        """From left to right."""
        return (self._copy,) if self._copies_only else (self._copy, self._again, self._branch)

    def keep_to_copying(self) -> None:
        """Nobody here can ask for another answer."""
        self._copies_only = True
        for button in (self._again, self._branch):
            button.hide()

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences under the figures."""
        return tuple(note.text() for note in self._notes)

    def append(self, tokens: Sequence[Token]) -> None:
        """More cells in the strip."""
        self.strip.append(tokens)

    def set_stats(self, parts: Sequence[StatsPart]) -> None:
        """Other figures; the caller asks for the height again."""
        self.stats.set_parts(parts)

    def finish(
        self, parts: Sequence[StatsPart], notes: Sequence[str], sources: tuple[Source, ...] = ()
    ) -> None:
        """The last figures, sentences to put under them, what the answer stands on, and the actions."""
        self.stats.set_parts(parts)
        self.sources.show_sources(sources)
        for text in notes:
            note = TextLabel(self._theme, text, 11, 16, "text2", wrap=True, tabular=True, parent=self)
            note.show()
            self._notes.append(note)
        self._finished = True
        self.strip.describe()
        for button in self.buttons:
            button.show()

    def show_version(self, place: int, count: int) -> None:
        """Which version of the answer this is, from 0, of how many."""
        self.versions.show_version(place, count)
        self.compare_button.setVisible(count > 1)

    def offer_everything(self, estimate: str) -> None:
        """Only a part was read: all of it can be. `estimate` says what that takes."""
        if self._copies_only:
            return
        self._estimate.setText(estimate)
        self.everything_button.setAccessibleDescription(estimate)
        self.everything_button.show()
        self._estimate.show()

    def offer_more(self, possible: bool) -> None:
        """Whether the model could write on from here."""
        self.more_button.setVisible(possible)
        self._arrange(self.width())

    def set_regenerable(self, possible: bool) -> None:
        """Whether another answer, or more of this one, can be asked for now."""
        self._again.setEnabled(possible)
        self.more_button.setEnabled(possible)
        self.everything_button.setEnabled(possible)
        self.versions.setEnabled(possible)

    def set_revealed(self, revealed: bool) -> None:
        """Whether the actions are to be seen."""
        for button in self.buttons:
            button.set_revealed(revealed)

    def height_for(self, width: int) -> int:
        """The whole footer's height, actions included once there are any."""
        return self._arrange(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange(self.width())

    def _arrange(self, width: int) -> int:
        """Put everything in its place for the column's width; the height taken."""
        # The footer's own left edge is as far out as the buttons' empty borders.
        left = px(-_ACTIONS_LEFT_PX)
        column = width - 2 * left
        self.strip.setGeometry(left, 0, column, px(token_strip.HEIGHT_PX + 2 * token_strip.REACH_PX))
        y = 0 if self.strip.isHidden() else px(_STRIP_BOTTOM_PX) + px(_STATS_GAP_PX)
        height = self.stats.height_for(column)
        self.stats.setGeometry(left, y, column, height)
        y += height
        for note in self._notes:
            y += px(_NOTE_GAP_PX)
            height = note.heightForWidth(column)
            note.setGeometry(left, y, column, height)
            y += height
        if not self.sources.isHidden():
            y += px(_NOTE_GAP_PX)
            self.sources.setGeometry(left, y, self.sources.width(), px(HEIGHT_PX))
            y += px(HEIGHT_PX)
        if self._finished:
            y += px(_ACTIONS_GAP_PX)
            size = px_size(action_button.SIZE)
            for place, button in enumerate(self.buttons):
                button.setGeometry(place * px(_ACTION_PITCH_PX), y, size.width(), size.height())
            self._arrange_offers(len(self.buttons) * px(_ACTION_PITCH_PX) + px(_EVERYTHING_GAP_PX), y, width)
            y += size.height()
        return y

    def _arrange_offers(self, left: int, y: int, width: int) -> None:
        for offer in (self.versions, self.compare_button):
            if not offer.isHidden():
                size = offer.sizeHint()
                offer.setGeometry(left, y, size.width(), size.height())
                left += size.width() + px(_EVERYTHING_GAP_PX)
        if not self.more_button.isHidden():
            size = self.more_button.sizeHint()
            self.more_button.setGeometry(left, y, size.width(), size.height())
            left += size.width() + px(_EVERYTHING_GAP_PX)
        size = self.everything_button.sizeHint()
        self.everything_button.setGeometry(left, y, size.width(), size.height())
        left += size.width() + px(_ESTIMATE_GAP_PX)
        self._estimate.setGeometry(left, y + px(4), max(0, width - left), px(16))

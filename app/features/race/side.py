"""RaceSide: one side of a race: its drafter, text and figures."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from app.chat.answer_body import AnswerBody
from app.chat.stats_line import LINE_PX, StatsLabel, StatsPart, finished_parts
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.shapes import draw_box, draw_text
from app.controls.text_label import TextLabel
from app.features.race import strings
from app.features.race.state import Recording, Sight
from app.features.side_window import ProgressBar
from app.gauges.figures import percent, seconds, speed
from app.richtext.text_canvas import MARGIN_PX
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height, set_fixed_size
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, px, px_size, ratio_of
from core.events import Token

_PADDING_PX = 10
_TOP_PX = 2
_RADIUS_PX = 9
# About five lines; a lower page scrolls.
_LEAST = QSize(160, 140)


class RaceText(QWidget):
    """The text of a side. Playing appends; seeking back rewrites it."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._tokens: Sequence[Token] = ()
        self._shown = 0
        self._finished = False
        self._area = QScrollArea(self)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        OverlayScrollBar(theme, self._area)
        self._page = QWidget()
        self._area.setWidget(self._page)
        self.body = self._new_body()
        # The margins keep the frame's rounded corners free.
        column_of(self._area, margins=(4, 8, 4, 8), parent=self)
        theme.changed.connect(self._restyle)
        self._restyle()

    def minimumSizeHint(self) -> QSize:
        return px_size(_LEAST)

    def show_tokens(self, tokens: Sequence[Token], count: int, done: bool) -> None:
        """Shows the first `count` of `tokens`; `done`: there are no more."""
        if tokens is not self._tokens or count < self._shown or (self._finished and not done):
            self._tokens = tokens
            self._restart_text()
        if count > self._shown:
            self.body.append(tokens[self._shown : count])
            self._shown = count
        if done and not self._finished:
            self._finished = True
            self.body.finish()
        # No caret before the start of the replay.
        self.body.setVisible(bool(tokens))
        self._arrange()
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), _RADIUS_PX, color("window"), color("hair"))

    def _new_body(self) -> AnswerBody:
        body = AnswerBody(self._theme, self._page)
        body.setAccessibleName(self._name)
        body.hide()
        return body

    def _restart_text(self) -> None:
        self._shown, self._finished = 0, False
        self.body.hide()
        self.body.deleteLater()
        self.body = self._new_body()

    def _arrange(self) -> None:
        width = self._area.viewport().width()
        column = max(40, width - 2 * px(_PADDING_PX))
        height = self.body.height_for(column)
        self._page.resize(width, height + 2 * px(_TOP_PX))
        self.body.setGeometry(px(_PADDING_PX) - MARGIN_PX, px(_TOP_PX), column + 2 * MARGIN_PX, height + 2)

    def _restyle(self) -> None:
        for widget in (self._area.viewport(), self._page):
            palette = QPalette(widget.palette())
            palette.setColor(QPalette.ColorRole.Window, self._theme.color("window"))
            widget.setPalette(palette)
        self._arrange()
        self.update()


_BAR_PX = 6
_CLOCK_PX = 100
_ICON_PX = 14


class RaceSide(QWidget):
    """`lead` marks the drafted side, whose bar is blue."""

    def __init__(
        self, theme: Theme, title: str, name: str, lead: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._title = title
        self._recording = Recording()
        self.subtitle = TextLabel(theme, "", 11, 14, "text2")
        self.status = _Status(theme)
        self.clock = _Clock(theme, "text" if lead else "text2")
        self.bar = ProgressBar(theme, "accent_fill" if lead else "text2", _BAR_PX)
        self.count = TextLabel(theme, "", 11, 15, tabular=True)
        self.share = TextLabel(theme, "", 11, 15, tabular=True)
        self.text = RaceText(theme, name)
        self.stats = StatsLabel(theme)
        set_fixed_height(self.stats, 2 * LINE_PX)
        self._lay_out(TextLabel(theme, title, 13, 17, "text", weight=600))

    def show_waiting(self, status: str) -> None:
        """Shows that recording has not begun."""
        self._recording = Recording()
        self._show(status, "", 0.0, 0.0)
        self.count.setText("")
        self.share.setText("")
        self.text.show_tokens((), 0, False)
        self.stats.set_parts(())

    def show_recording(self, recording: Recording, *, done: bool = False) -> None:
        """Shows the figures while this side, or the other, is recorded."""
        tokens = recording.tokens
        reading = not tokens and recording.prompt_tokens > 0
        status = strings.RECORDED if done else strings.READING if reading else strings.RECORDING
        self._show(status, "", tokens[-1].time_s if tokens else 0.0, 0.0)
        said = strings.recorded(len(tokens))
        if reading:
            said = strings.read(recording.read_tokens, recording.prompt_tokens)
        self.count.setText(said)
        self.share.setText("")

    def show_sight(self, recording: Recording, sight: Sight) -> None:
        """Shows a moment of the replay."""
        self._recording = recording
        finished = strings.FINISHED if sight.done else ""
        writing = strings.WRITING if sight.tokens else strings.READING
        self._show(finished or writing, "flag" if sight.done else "", sight.clock_s, sight.share)
        self.count.setText(strings.progress(sight.tokens, sight.total))
        self.share.setText(percent(sight.share))
        self.text.show_tokens(recording.tokens, sight.tokens, sight.done)
        self.stats.set_parts(self._parts(sight))
        self.setAccessibleName(
            strings.side_described(
                self._title, self.status.text, sight.clock_s, self.count.text(), sight.tokens_per_s
            )
        )

    def _show(self, status: str, icon: str, clock_s: float, share: float) -> None:
        self.status.show_status(status, icon)
        self.clock.show_seconds(clock_s)
        self.bar.show_share(share)

    def _parts(self, sight: Sight) -> tuple[StatsPart, ...]:
        if sight.done and self._recording.finished:
            return finished_parts(self._recording.finished)
        parts = [StatsPart(f"{speed(sight.tokens_per_s)} tok/s", "strong")] if sight.tokens_per_s else []
        return (*parts, StatsPart(strings.recorded(sight.tokens))) if sight.tokens else ()

    def _lay_out(self, title: TextLabel) -> None:
        head = row_of((column_of(STRETCH, title, self.subtitle), 1), self.status, self.clock, gap=14)
        for widget in (self.status, self.clock):
            head.setAlignment(widget, Qt.AlignmentFlag.AlignBottom)
        figures = row_of((self.count, 1), self.share)
        column_of(head, 10, self.bar, 5, figures, 12, (self.text, 1), 8, self.stats, parent=self)


class _Clock(QWidget):
    """A clock, 26/30 semibold, with a small unit that does not move while the digits change."""

    def __init__(self, theme: Theme, ink: str) -> None:
        super().__init__()
        self._theme = theme
        self._ink = ink
        self.text = seconds(0.0)
        set_fixed_size(self, QSize(_CLOCK_PX, 30))

    def show_seconds(self, clock_s: float) -> None:
        """Sets the time."""
        self.text = seconds(clock_s)
        self.setAccessibleName(f"{self.text} {strings.SECONDS}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        unit = ui_font(12)
        unit_px = QFontMetricsF(unit).horizontalAdvance(strings.SECONDS) + 3
        box = area_of(self)
        right = Qt.AlignmentFlag.AlignRight
        font = ui_font(26, 600, tabular=True)
        draw_text(
            painter, box.adjusted(0, 0, -unit_px, 0), self.text, font, self._theme.color(self._ink), right
        )
        color = self._theme.color("text2")
        draw_text(painter, box.adjusted(0, 8, 0, 0), strings.SECONDS, unit, color, right)


class _Status(QWidget):
    """The status; a finished side has a flag and is blue."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._icon = ""
        self.text = ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_status(self, text: str, icon: str) -> None:
        """Sets the status; `icon` may be empty."""
        if (text, icon) != (self.text, self._icon):
            self.text, self._icon = text, icon
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        text_px = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(self.text)
        return px_size(QSize(int(text_px + (_ICON_PX + 5 if self._icon else 0) + 1.999), 22))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        ink = self._theme.color("accent" if self._icon else "text2")
        box = area_of(self)
        if self._icon:
            flag = icon_pixmap(self._icon, ink, _ICON_PX, ratio_of(self))
            painter.drawPixmap(QPointF(0, (height_of(self) - _ICON_PX) // 2), flag)
            box.setLeft(_ICON_PX + 5)
        draw_text(
            painter, box, self.text, ui_font(12, 500 if self._icon else 400), ink, Qt.AlignmentFlag.AlignLeft
        )

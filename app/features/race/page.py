"""RacePage: a prompt answered with and without drafting, side by side; PromptBar: its question."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QPoint, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QHideEvent, QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.buttons import Button, IconButton
from app.controls.choices import Popup, Segment
from app.controls.numbers import Spin
from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import draw_box, draw_text
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.race import strings
from app.features.race.replay import RaceChart, RaceSide
from app.features.race.state import Race, Replay, Stage, replay_of, sight, verdict
from app.features.side_window import WindowTitles
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_width, set_strut
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_px, painter_on, px_size, ratio_of, width_of
from core.events import Attachment, Message
from core.settings.declaration import find
from core.settings.request import Sampling

_HEAD_PX = 40
_RADIUS_PX = 10
_CHIP_PX = 24
_LEAST_TOKENS, _MOST_TOKENS = 8, 4096


class PromptBar(QWidget):
    """The question, drafter and length of a race. Documents come with the question."""

    edited = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._attachments: tuple[Attachment, ...] = ()
        self._line = TextLabel(theme, "", 13.5, 19, "text")
        self._line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._named: list[_NameChip] = []
        self.seed = TextLabel(theme, "", 12, 16, tabular=True)
        self.edit_button = IconButton(theme, "edit", strings.EDIT, True)
        self.question = TextArea(theme)
        self.question.setAccessibleName(strings.QUESTION)
        labels = find("drafting.drafter").labels
        self.drafter = Popup(theme, [(name, label) for name, label in labels.items() if name != "off"])
        self.drafter.setAccessibleName(strings.DRAFTER)
        self.most_tokens = Spin(theme, _LEAST_TOKENS, _MOST_TOKENS, 32)
        self.most_tokens.setAccessibleName(f"{strings.AT_MOST} {strings.TOKENS}")
        self._earlier = TextLabel(theme, "", 11, 15)
        self._lay_out(theme)
        self.edit_button.toggled.connect(self._editor.setVisible)
        self.question.value_changed.connect(self._show_line)
        for control in (self.question, self.drafter, self.most_tokens):
            control.value_changed.connect(self.edited)
        theme.zoomed.connect(self._show_line)
        self._editor.hide()

    @property
    def message(self) -> Message:
        return Message("user", self.question.value.strip(), self._attachments)

    def show_message(self, message: Message, earlier: int) -> None:
        """Replaces the question; `earlier` are the preceding messages of its chat."""
        self._attachments = message.attachments
        for chip in self._named:
            self._chips.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self._named = [_NameChip(self._theme, attachment.name) for attachment in message.attachments]
        for chip in self._named:
            self._chips.addWidget(chip)
        self._earlier.setText(strings.earlier(earlier) if earlier else "")
        self.question.set_value(message.content)
        self._show_line()

    def show_seed(self, sampling: Sampling) -> None:
        """Shows the seed that both answers use, if they sample."""
        draws = sampling.temperature > 0
        self.seed.setText(strings.SEED.format(seed=sampling.seed) if draws else "")
        self.seed.setVisible(draws)

    def open_editor(self, opened: bool) -> None:
        """Opens the question for editing."""
        self.edit_button.setChecked(opened)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_line()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        draw_box(painter, area_of(self), _RADIUS_PX, self._theme.color("fill1"))

    def _show_line(self, _text: str = "") -> None:
        text = " ".join(self.question.value.split())
        metrics = QFontMetricsF(ui_font(13.5))
        self._head.activate()
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(1.0, design_px(self._line.width())))
        self._line.setText(shown)
        self._line.setAccessibleName(text)

    def _lay_out(self, theme: Theme) -> None:
        self._chips = row_of(gap=6)
        parts = ((self._line, 1), self._chips, self._earlier, self.seed, self.edit_button)
        self._head = row_of(*parts, gap=10, margins=(14, 0, 8, 0))
        set_strut(self._head, _HEAD_PX)
        self._editor = QWidget(self)
        set_fixed_width(self.drafter, 160)
        drafter, at_most, tokens = (
            TextLabel(theme, words, 12, 16) for words in (strings.DRAFTER, strings.AT_MOST, strings.TOKENS)
        )
        choices = row_of(drafter, self.drafter, 16, at_most, self.most_tokens, tokens, STRETCH, gap=8)
        column_of(self.question, choices, gap=10, margins=(14, 0, 14, 12), parent=self._editor)
        column_of(self._head, self._editor, parent=self)


class _NameChip(QWidget):
    """The name of a document."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._name = name
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        text_px = QFontMetricsF(ui_font(12)).horizontalAdvance(self._name)
        return px_size(QSize(min(180, int(text_px) + 36), _CHIP_PX))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), 7, color("control"), color("hair2"))
        icon = icon_pixmap("doc", color("text2"), 14, ratio_of(self))
        painter.drawPixmap(7, (_CHIP_PX - 14) // 2, icon)
        box = QRectF(26, 0, width_of(self) - 34, _CHIP_PX)
        draw_text(painter, box, self._name, ui_font(12), color("text"), Qt.AlignmentFlag.AlignLeft)


HEADER_PX = 52
_FRAME_MS = 33


class RacePage(QWidget):
    """`show_race` after each change of the state."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._race = Race()
        self._blocked = ""
        self.replay = Replay(0.0)
        self.rate = Segment(theme, strings.RATES)
        self.rate.setAccessibleName(strings.REPLAY)
        self.rate.set_value("1")
        self.start_button = Button(theme, strings.START, "primary", small=True)
        self.again_button = Button(theme, strings.RUN_AGAIN, small=True, icon_name="redo")
        self.stop_button = Button(theme, strings.STOP, small=True, icon_name="stop")
        self.done_button = Button(theme, strings.DONE, "primary", small=True)
        self.prompt = PromptBar(theme)
        self.headline = TextLabel(theme, strings.READY_TITLE, 20, 26, "text", weight=600, tabular=True)
        self.verdict = TextLabel(theme, "", 13, 18, tabular=True, wrap=True)
        self.plain = RaceSide(theme, strings.PLAIN, strings.PLAIN_ANSWER, False)
        self.drafted = RaceSide(theme, strings.DRAFTED, strings.DRAFTED_ANSWER, True)
        self.chart = RaceChart(theme)
        self.play_button = IconButton(theme, "play", strings.PLAY)
        self._frames = QTimer(self)
        self._frames.setInterval(_FRAME_MS)
        self._clock = QElapsedTimer()
        self._lay_out()
        self._wire()
        self.show_race(self._race)

    def show_race(self, race: Race) -> None:
        """Shows the race; the replay begins when both answers are recorded."""
        began = race.stage is Stage.RUN and self._race.stage is not Stage.RUN
        self._race = race
        self._show_buttons()
        self._show_subtitles()
        if race.stage is Stage.RUN:
            if began:
                self._begin_replay()
            return
        self._set_replay(Replay(0.0, rate=self.replay.rate))
        self.chart.show_race(race.plain, race.drafted)
        for side in (self.plain, self.drafted):
            if side is self.plain and race.stage is not Stage.IDLE:
                side.show_recording(race.plain, done=race.stage is Stage.DRAFTED)
            elif race.stage is Stage.DRAFTED:
                side.show_recording(race.drafted)
            else:
                side.show_waiting(strings.NEXT if race.recording else strings.WAITING)
        self._show_words()

    def show_blocked(self, reason: str) -> None:
        """Shows why recording is disabled; empty if it is enabled."""
        if reason != self._blocked:
            self._blocked = reason
            self._show_buttons()
            self._show_words()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and self._race.stage is Stage.RUN:
            self._toggle()
            return
        super().keyPressEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._set_replay(self.replay.pause())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("window"))
        painter.fillRect(QRectF(0, HEADER_PX - 1, width_of(self), 1), self._theme.color("hair"))
        if self._race.stage is Stage.RUN:
            top = design_px(self._foot.mapTo(self, QPoint(0, 0)).y()) - 10
            if top > HEADER_PX:  # it is visible
                painter.fillRect(QRectF(28, top, width_of(self) - 56, 1), self._theme.color("hair"))

    # ---- the replay

    def _begin_replay(self) -> None:
        race = self._race
        replay = replay_of(race.plain, race.drafted, float(self.rate.value))
        self.chart.show_race(race.plain, race.drafted)
        self._show_words()
        still = self._theme.reduced_motion or not self.isVisible()
        self._set_replay(replay.sought(replay.end_s) if still else replay.play())

    def _set_replay(self, replay: Replay) -> None:
        self.replay = replay
        if replay.playing and not self._frames.isActive():
            self._clock.start()
            self._frames.start()
        elif not replay.playing:
            self._frames.stop()
        name = strings.PAUSE if replay.playing else strings.PLAY
        self.play_button.set_icon_name("pause" if replay.playing else "play")
        self.play_button.setAccessibleName(name)
        self.play_button.setToolTip(name)
        if self._race.stage is Stage.RUN:
            self.plain.show_sight(self._race.plain, sight(self._race.plain, replay.at_s))
            self.drafted.show_sight(self._race.drafted, sight(self._race.drafted, replay.at_s))
            self.chart.show_moment(replay.at_s)

    def _frame(self) -> None:
        self._set_replay(self.replay.passed(self._clock.restart() / 1000))

    def _toggle(self) -> None:
        self._set_replay(self.replay.pause() if self.replay.playing else self.replay.play())

    # ---- values

    def _show_words(self) -> None:
        race = self._race
        title, text, color = strings.READY_TITLE, race.trouble or self._blocked or strings.READY_TEXT, "text2"
        if race.stage is Stage.RUN:
            found = verdict(race.plain, race.drafted)
            title = strings.headline(found.ratio)
            same = found.difference is None
            equal = strings.identical(found.tokens) if same else strings.different(found.difference or 0)
            text = f"{strings.sooner(found.sooner_s, found.read_sooner_s)} {equal}"
            color = "text2" if same else "danger"
        elif race.recording:
            title = strings.RECORDING_PLAIN if race.stage is Stage.PLAIN else strings.RECORDING_DRAFTED
            title = strings.STOPPING if race.stage is Stage.STOPPING else title
            text = strings.RECORDING_TEXT
        elif race.trouble:
            title, color = strings.NOT_DONE, "danger"
        self.headline.setText(title)
        self.verdict.setText(text)
        self.verdict.set_color(color)

    def _show_subtitles(self) -> None:
        course = self._race.course
        self.plain.subtitle.setText(strings.NO_DRAFTER)
        if course is None:
            self.drafted.subtitle.setText("")
            return
        settings = course.settings
        drafter, exact = find("drafting.drafter").labels, find("decoding.exactness").labels
        finished = self._race.drafted.finished
        used = finished.effective.drafter if finished else settings.drafting.drafter
        self.drafted.subtitle.setText(strings.subtitle_of(drafter[used], exact[settings.decoding.exactness]))

    def _show_buttons(self) -> None:
        race = self._race
        idle = race.stage is Stage.IDLE
        run = race.stage is Stage.RUN
        self.start_button.setVisible(idle)
        self.again_button.setVisible(run)
        self.stop_button.setVisible(race.recording)
        self.done_button.set_kind("plain" if idle else "primary")
        self.stop_button.setEnabled(race.stage is not Stage.STOPPING)
        for button in (self.start_button, self.again_button):
            button.setEnabled(not self._blocked and bool(self.prompt.message.content))
            button.setToolTip(self._blocked)
        self.prompt.edit_button.setEnabled(not race.recording)
        if race.recording:
            self.prompt.open_editor(False)
        for part in (self._rate_label, self.rate, self.chart, self._foot):
            part.setVisible(run)
        self.update()

    def _wire(self) -> None:
        self._frames.timeout.connect(self._frame)
        self.play_button.clicked.connect(self._toggle)
        self.chart.sought.connect(lambda at_s: self._set_replay(self.replay.sought(at_s)))
        self.rate.value_changed.connect(lambda value: self._set_replay(self.replay.at_rate(float(value))))
        self.prompt.edited.connect(self._show_buttons)

    def _lay_out(self) -> None:
        theme = self._theme
        self._rate_label = TextLabel(theme, strings.REPLAY, 12, 16)
        header = row_of(
            *((WindowTitles(theme, strings.TITLE, strings.SUBTITLE), 1), self._rate_label, self.rate, 4),
            *(self.start_button, self.again_button, self.stop_button, self.done_button),
            gap=8,
            margins=(20, 0, 12, 1),
        )
        set_strut(header, HEADER_PX)
        said = row_of(self.headline, (self.verdict, 1), gap=14)
        said.setAlignment(self.headline, Qt.AlignmentFlag.AlignTop)
        said.setAlignment(self.verdict, Qt.AlignmentFlag.AlignVCenter)
        sides = row_of((self.plain, 1), (self.drafted, 1), gap=28)
        self._foot = QWidget()
        chart = TextLabel(theme, strings.CHART, 12, 16, "text", weight=600)
        about_chart = TextLabel(theme, strings.CHART_SAYS, 12, 16)
        row_of(chart, (about_chart, 1), self.play_button, gap=4, parent=self._foot)
        page = QWidget()
        column_of(
            *(self.prompt, 18, said, 14, (sides, 1), 14, self._foot, self.chart),
            margins=(28, 14, 28, 4),
            parent=page,
        )
        self._area = ScrollPage(theme, page)
        self._area.verticalScrollBar().valueChanged.connect(self.update)
        column_of(header, (self._area, 1), parent=self)

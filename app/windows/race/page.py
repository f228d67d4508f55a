"""RacePage: the race in the window's content: prompt, headline, both sides, and the chart to scrub.

Shows a `Race` and replays it; what is to be recorded is asked for by signals. The timer runs only
while the replay moves and the page is seen; where less motion is wanted the end is shown at once.
"""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QPoint, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.buttons.icon_button import IconButton
from app.controls.buttons.segment import Segment
from app.controls.scroll_page import ScrollPage
from app.controls.text_label import TextLabel
from app.controls.window_titles import WindowTitles
from app.session.race.race import Race, Stage
from app.session.race.replay import Replay, replay_of, sight, verdict
from app.theme.measures import add_gap, set_margins, set_spacing, set_strut
from app.theme.theme import Theme
from app.theme.zoom import area_of, design_px, painter_on, width_of
from app.windows.race import strings
from app.windows.race.chart import RaceChart
from app.windows.race.prompt_bar import PromptBar
from app.windows.race.side import RaceSide
from core.settings.declaration import find

HEADER_PX = 52
_FRAME_MS = 33


class RacePage(QWidget):
    """`show_race` brings it up to date with the record."""

    start_requested = Signal()
    stop_requested = Signal()
    done_requested = Signal()

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
        """Where the race is now; the replay begins when both answers are recorded."""
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
        """Why nothing can be recorded now; empty if it can."""
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
            if top > HEADER_PX:  # not scrolled away
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

    # ---- what it says

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
        self.start_button.clicked.connect(self.start_requested)
        self.again_button.clicked.connect(self.start_requested)
        self.stop_button.clicked.connect(self.stop_requested)
        self.done_button.clicked.connect(self.done_requested)
        self.prompt.edited.connect(self._show_buttons)
        self._theme.changed.connect(self.update)

    def _lay_out(self) -> None:
        theme = self._theme
        self._rate_label = TextLabel(theme, strings.REPLAY, 12, 16)
        header = QHBoxLayout()
        set_margins(header, 20, 0, 12, 1)
        set_spacing(header, 8)
        header.addWidget(WindowTitles(theme, strings.TITLE, strings.SUBTITLE), 1)
        header.addWidget(self._rate_label)
        header.addWidget(self.rate)
        add_gap(header, 4)
        for button in (self.start_button, self.again_button, self.stop_button, self.done_button):
            header.addWidget(button)
        set_strut(header, HEADER_PX)
        said = QHBoxLayout()
        set_spacing(said, 14)
        said.addWidget(self.headline, 0, Qt.AlignmentFlag.AlignTop)
        said.addWidget(self.verdict, 1, Qt.AlignmentFlag.AlignVCenter)
        sides = QHBoxLayout()
        set_spacing(sides, 28)
        sides.addWidget(self.plain, 1)
        sides.addWidget(self.drafted, 1)
        self._foot = QWidget()
        title = QHBoxLayout(self._foot)
        title.setContentsMargins(0, 0, 0, 0)
        set_spacing(title, 4)
        title.addWidget(TextLabel(theme, strings.CHART, 12, 16, "text", weight=600))
        title.addWidget(TextLabel(theme, strings.CHART_SAYS, 12, 16), 1)
        title.addWidget(self.play_button)
        page = QWidget()
        body = QVBoxLayout(page)
        set_margins(body, 28, 14, 28, 4)
        body.setSpacing(0)
        body.addWidget(self.prompt)
        add_gap(body, 18)
        body.addLayout(said)
        add_gap(body, 14)
        body.addLayout(sides, 1)
        add_gap(body, 14)
        body.addWidget(self._foot)
        body.addWidget(self.chart)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(header)
        self._area = ScrollPage(theme, page)
        self._area.verticalScrollBar().valueChanged.connect(self.update)
        column.addWidget(self._area, 1)

"""RacePage: a prompt answered with and without drafting, side by side; PromptBar: its question."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from app.chat.answer_body import AnswerBody
from app.chat.stats_line import LINE_PX, StatsLabel, StatsPart, finished_parts
from app.controls.buttons import Button, IconButton, IconLabel
from app.controls.choices import Popup
from app.controls.numbers import Spin
from app.controls.scroll_bar import ScrollPage, lay_bars_over
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.race import strings
from app.features.race.race import Race, Recording, Stage, verdict
from app.features.side_window import Hairline, WindowTitles
from app.richtext.text_canvas import MARGIN_PX
from app.theme.fonts import ui_font
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_width,
    set_maximum_width,
    set_strut,
)
from app.theme.sheet import set_ground
from app.theme.theme import color, theme
from app.theme.zoom import design_px, px, px_size
from core.events import Attachment, Message, Token
from core.settings.declaration import find
from core.settings.request import Sampling

_HEAD_PX = 40
_RADIUS_PX = 10
_CHIP_PX = 24
_LEAST_TOKENS, _MOST_TOKENS = 8, 4096


class PromptBar(QWidget):
    """The question, drafter and length of a race. Documents come with the question."""

    edited = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "prompt")
        self._attachments: tuple[Attachment, ...] = ()
        self._line = TextLabel("", 13.5, 19, "text")
        self._line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._named: list[_NameChip] = []
        self.seed = TextLabel("", 12, 16, tabular=True)
        self.edit_button = IconButton("edit", strings.EDIT, True)
        self.question = TextArea()
        self.question.setAccessibleName(strings.QUESTION)
        labels = find("drafting.drafter").labels
        self.drafter = Popup([(name, label) for name, label in labels.items() if name != "off"])
        self.drafter.setAccessibleName(strings.DRAFTER)
        self.most_tokens = Spin(_LEAST_TOKENS, _MOST_TOKENS, 32)
        self.most_tokens.setAccessibleName(f"{strings.AT_MOST} {strings.TOKENS}")
        self._earlier = TextLabel("", 11, 15)
        self._lay_out()
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
        self._named = [_NameChip(attachment.name) for attachment in message.attachments]
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

    def _show_line(self, _text: str = "") -> None:
        text = " ".join(self.question.value.split())
        metrics = QFontMetricsF(ui_font(13.5))
        self._head.activate()
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(1.0, design_px(self._line.width())))
        self._line.setText(shown)
        self._line.setAccessibleName(text)

    def _lay_out(self) -> None:
        self._chips = row_of(gap=6)
        parts = ((self._line, 1), self._chips, self._earlier, self.seed, self.edit_button)
        self._head = row_of(*parts, gap=10, margins=(14, 0, 8, 0))
        set_strut(self._head, _HEAD_PX)
        self._editor = QWidget(self)
        set_fixed_width(self.drafter, 160)
        drafter, at_most, tokens = (
            TextLabel(words, 12, 16) for words in (strings.DRAFTER, strings.AT_MOST, strings.TOKENS)
        )
        choices = row_of(drafter, self.drafter, 16, at_most, self.most_tokens, tokens, STRETCH, gap=8)
        column_of(self.question, choices, gap=10, margins=(14, 0, 14, 12), parent=self._editor)
        column_of(self._head, self._editor, parent=self)


class _NameChip(QWidget):
    """The name of a document."""

    def __init__(self, name: str) -> None:
        super().__init__()
        set_ground(self, "chip")
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        set_maximum_width(self, 180)
        row_of(
            IconLabel("doc", "text2"),
            TextLabel(name, 12, _CHIP_PX, "text"),
            gap=5,
            margins=(7, 0, 8, 0),
            parent=self,
        )


_PADDING_PX = 10
_TEXT_TOP_PX = 2
_TEXT_RADIUS_PX = 9
# About five lines; a lower page scrolls.
_LEAST = QSize(160, 140)


class RaceText(QWidget):
    """The text of a side."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "box")
        self._name = name
        self._tokens: Sequence[Token] = ()
        self._shown = 0
        self._finished = False
        self._area = QScrollArea(self)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        lay_bars_over(self._area)
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
        # No caret before there is a text.
        self.body.setVisible(bool(tokens))
        self._arrange()
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.maximum())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _new_body(self) -> AnswerBody:
        body = AnswerBody(self._page)
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
        self._page.resize(width, height + 2 * px(_TEXT_TOP_PX))
        self.body.setGeometry(
            px(_PADDING_PX) - MARGIN_PX, px(_TEXT_TOP_PX), column + 2 * MARGIN_PX, height + 2
        )

    def _restyle(self) -> None:
        for widget in (self._area.viewport(), self._page):
            palette = QPalette(widget.palette())
            palette.setColor(QPalette.ColorRole.Window, color("window"))
            widget.setPalette(palette)
        self._arrange()
        self.update()


class RaceSide(QWidget):
    """One answer; `lead` marks the drafted side."""

    def __init__(self, title: str, name: str, lead: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        right = Qt.AlignmentFlag.AlignRight
        self.subtitle = TextLabel("", 11, 14, "text2")
        self.status = TextLabel("", 12, 22, "text2", align=right)
        ink = "text" if lead else "text2"
        self.clock = TextLabel("", 26, 30, ink, weight=600, tabular=True, align=right)
        self.text = RaceText(name)
        self.stats = StatsLabel()
        set_fixed_height(self.stats, 2 * LINE_PX)
        title_label = TextLabel(title, 13, 17, "text", weight=600)
        head = row_of((column_of(STRETCH, title_label, self.subtitle), 1), self.status, self.clock, gap=14)
        for widget in (self.status, self.clock):
            head.setAlignment(widget, Qt.AlignmentFlag.AlignBottom)
        column_of(head, 12, (self.text, 1), 8, self.stats, parent=self)

    def show_waiting(self, status: str) -> None:
        """Shows that recording has not begun."""
        self._show(status, 0.0)
        self.text.show_tokens((), 0, False)
        self.stats.set_parts(())

    def show_recording(self, recording: Recording, *, done: bool = False) -> None:
        """Shows the figures while this side, or the other, is recorded."""
        tokens = recording.tokens
        reading = not tokens and recording.prompt_tokens > 0
        status = strings.RECORDED if done else strings.READING if reading else strings.RECORDING
        self._show(status, recording.duration_s)
        written = strings.recorded(len(tokens))
        if reading:
            written = strings.read(recording.read_tokens, recording.prompt_tokens)
        self.text.show_tokens((), 0, False)
        self.stats.set_parts((StatsPart(written),))

    def show_answer(self, recording: Recording, at_s: float | None = None) -> None:
        """Shows the whole answer, or what was written of it at a time."""
        tokens, end_s = recording.tokens, recording.duration_s
        count = len(tokens) if at_s is None else recording.written(at_s)
        done = count == len(tokens)
        self._show(strings.FINISHED if done else strings.WRITING, end_s if done else at_s or 0.0)
        self.status.set_color("accent" if done else "text2")
        self.text.show_tokens(tokens, count, done)
        parts = finished_parts(recording.finished) if recording.finished and done else ()
        self.stats.set_parts(parts or (StatsPart(strings.recorded(count)),))
        self.setAccessibleName(f"{self._title}: {self.status.text()}, {self.clock.text()}")

    def _show(self, status: str, clock_s: float) -> None:
        self.status.setText(status)
        self.status.set_color("text2")
        self.clock.setText(strings.at_seconds(clock_s))


HEADER_PX = 52


class RacePage(QWidget):
    """`show_race` after each change of the state."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_ground(self, "window")
        self._race = Race()
        self._blocked = ""
        self.start_button = Button(strings.START, "primary", small=True)
        self.again_button = Button(strings.RUN_AGAIN, small=True, icon_name="redo")
        self.stop_button = Button(strings.STOP, small=True, icon_name="stop")
        self.done_button = Button(strings.DONE, "primary", small=True)
        self.prompt = PromptBar()
        self.headline = TextLabel(strings.READY_TITLE, 20, 26, "text", weight=600, tabular=True)
        self.verdict = TextLabel("", 13, 18, tabular=True, wrap=True)
        self.plain = RaceSide(strings.PLAIN, strings.PLAIN_ANSWER, False)
        self.drafted = RaceSide(strings.DRAFTED, strings.DRAFTED_ANSWER, True)
        self._lay_out()
        self.prompt.edited.connect(self._show_buttons)
        self.show_race(self._race)

    def show_race(self, race: Race) -> None:
        """Shows the race; the texts when both answers are recorded."""
        self._race = race
        self._show_buttons()
        self._show_subtitles()
        for side, recording in ((self.plain, race.plain), (self.drafted, race.drafted)):
            if race.stage is Stage.RUN:
                side.show_answer(recording)
            elif side is self.plain and race.stage is not Stage.IDLE:
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
        settings = self._race.settings
        self.plain.subtitle.setText(strings.NO_DRAFTER)
        if settings is None:
            self.drafted.subtitle.setText("")
            return
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

    def _lay_out(self) -> None:
        header = row_of(
            *((WindowTitles(strings.TITLE, strings.SUBTITLE), 1), 4),
            *(self.start_button, self.again_button, self.stop_button, self.done_button),
            gap=8,
            margins=(20, 0, 12, 1),
        )
        set_strut(header, HEADER_PX)
        said = row_of(self.headline, (self.verdict, 1), gap=14)
        said.setAlignment(self.headline, Qt.AlignmentFlag.AlignTop)
        said.setAlignment(self.verdict, Qt.AlignmentFlag.AlignVCenter)
        sides = row_of((self.plain, 1), (self.drafted, 1), gap=28)
        page = QWidget()
        column_of(
            *(self.prompt, 18, said, 14, (sides, 1)),
            margins=(28, 14, 28, 20),
            parent=page,
        )
        column_of(header, Hairline(), (ScrollPage(page), 1), parent=self)

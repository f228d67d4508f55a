"""RacePage: a prompt answered with and without drafting, side by side; PromptBar: its question."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QWidget

from app.chat.transcript import Transcript
from app.controls.buttons import Button
from app.controls.choices import Popup
from app.controls.numbers import Spin
from app.controls.scroll_bar import ScrollPage
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.race import strings
from app.features.race.state import Race, Recording, Stage, verdict
from app.features.side_window import Hairline, WindowTitles
from app.session.chats.conversation import NOTHING_WRITTEN, Answer, Turn, attached_names, message_text
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height, set_fixed_width
from app.theme.sheet import set_ground
from app.theme.zoom import px_size
from core.events import Message
from core.prefill.forecast import display
from core.settings.declaration import find
from core.settings.request import Sampling

_LEAST_TOKENS, _MOST_TOKENS = 8, 4096
_QUESTION_PX = 66
# About five lines; a lower page scrolls.
_LEAST_ANSWER = QSize(160, 140)


class PromptBar(QWidget):
    """The question, drafter and length of a race. Documents and images come with the question."""

    def __init__(self, edited: Callable[[], object]) -> None:
        super().__init__()
        set_ground(self, "prompt")
        self._given = NOTHING_WRITTEN
        self.question = TextArea()
        self.question.setAccessibleName(strings.QUESTION)
        set_fixed_height(self.question, _QUESTION_PX)
        labels = find("drafting.drafter").labels
        self.drafter = Popup([(name, label) for name, label in labels.items() if name != "off"])
        self.drafter.setAccessibleName(strings.DRAFTER)
        set_fixed_width(self.drafter, 160)
        self.most_tokens = Spin(_LEAST_TOKENS, _MOST_TOKENS, 32)
        self.most_tokens.setAccessibleName(f"{strings.AT_MOST} {strings.TOKENS}")
        self.most_tokens.refused.connect(self.most_tokens.show_refusal)
        self.seed = TextLabel("", 12, 16, tabular=True)
        self.context = TextLabel("", 12, 16, align=Qt.AlignmentFlag.AlignRight)
        drafter, at_most, tokens = (
            TextLabel(words, 12, 16) for words in (strings.DRAFTER, strings.AT_MOST, strings.TOKENS)
        )
        choices = row_of(
            *(drafter, self.drafter, 16, at_most, self.most_tokens, tokens),
            *(16, self.seed, (self.context, 1)),
            gap=8,
        )
        column_of(self.question, choices, gap=10, margins=(14, 12, 14, 12), parent=self)
        for control in (self.question, self.drafter, self.most_tokens):
            control.value_changed.connect(lambda value: edited())

    @property
    def message(self) -> Message:
        return replace(self._given, content=message_text(self.question.value))

    def show_message(self, message: Message, earlier: int) -> None:
        """Replaces the question; `earlier` are the preceding messages of its chat."""
        self._given = message
        names = attached_names(message)
        self.context.setText(", ".join([*names, *([strings.earlier(earlier)] if earlier else [])]))
        self.question.set_value(message.content)

    def show_seed(self, sampling: Sampling) -> None:
        """Shows the seed that both answers use, if they sample."""
        draws = sampling.temperature > 0
        self.seed.setText(strings.SEED.format(seed=sampling.seed) if draws else "")
        self.seed.setVisible(draws)


class RaceSide(QWidget):
    """One answer; `lead` marks the drafted side."""

    def __init__(self, title: str, name: str, lead: bool) -> None:
        super().__init__()
        self._title = title
        right = Qt.AlignmentFlag.AlignRight
        self.subtitle = TextLabel("", 11, 14, "text2")
        self.status = TextLabel("", 12, 22, "text2", align=right)
        ink = "text" if lead else "text2"
        self.clock = TextLabel("", 26, 30, ink, weight=600, tabular=True, align=right)
        self.transcript = Transcript(read_only=True)
        self.transcript.setAccessibleName(name)
        self.transcript.setMinimumSize(px_size(_LEAST_ANSWER))
        title_label = TextLabel(title, 13, 17, "text", weight=600)
        head = row_of((column_of(STRETCH, title_label, self.subtitle), 1), self.status, self.clock, gap=14)
        for widget in (self.status, self.clock):
            head.setAlignment(widget, Qt.AlignmentFlag.AlignBottom)
        column_of(head, 12, (self.transcript, 1), parent=self)

    def show_status(self, status: str, recording: Recording) -> None:
        """Shows a status and the recorded time, without the answer."""
        self.transcript.clear()
        self._show(status, recording)

    def show_recording(self, recording: Recording) -> None:
        if recording.progress and not recording.tokens:
            words = display(recording.progress, time.monotonic()).words
        else:
            words = strings.recorded(len(recording.tokens))
        self.show_status(words, recording)

    def show_answer(self, question: Message, recording: Recording, drafter: str) -> None:
        answer = Answer(tuple(recording.tokens), "finished", recording.finished)
        self.transcript.show_turns((Turn("race", question, answer),), drafter)
        self._show(strings.FINISHED, recording)
        self.status.set_color("accent")

    def _show(self, status: str, recording: Recording) -> None:
        self.status.setText(status)
        self.status.set_color("text2")
        self.clock.setText(strings.at_seconds(recording.duration_s))
        self.setAccessibleName(f"{self._title}: {status}, {self.clock.text()}")


HEADER_PX = 52


class RacePage(QWidget):
    """`show_race` after each change of the state."""

    def __init__(self) -> None:
        super().__init__()
        set_ground(self, "window")
        self._race = Race()
        self._blocked = ""
        self.start_button = Button(strings.START, "primary", small=True)
        self.again_button = Button(strings.RUN_AGAIN, small=True, icon_name="redo")
        self.stop_button = Button(strings.STOP, small=True, icon_name="stop")
        self.done_button = Button(strings.DONE, "primary", small=True)
        self.prompt = PromptBar(self._show_buttons)
        self.headline = TextLabel(strings.READY_TITLE, 20, 26, "text", weight=600, tabular=True)
        self.verdict = TextLabel("", 13, 18, tabular=True, wrap=True)
        self.plain = RaceSide(strings.PLAIN, strings.PLAIN_ANSWER, False)
        self.drafted = RaceSide(strings.DRAFTED, strings.DRAFTED_ANSWER, True)
        self._lay_out()
        self.show_race(self._race)

    def show_race(self, race: Race) -> None:
        self._race = race
        self._show_buttons()
        self._show_subtitles()
        for side, recording in ((self.plain, race.plain), (self.drafted, race.drafted)):
            if race.stage is Stage.RUN:
                effective = recording.finished.effective if recording.finished else None
                side.show_answer(race.messages[-1], recording, effective.drafter if effective else "")
            elif recording is race.side:
                side.show_recording(recording)
            elif recording.finished:
                side.show_status(strings.RECORDED, recording)
            else:
                side.show_status(strings.NEXT if race.recording else strings.WAITING, recording)
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
            message = self.prompt.message
            button.setEnabled(not self._blocked and bool(message.content or message.images))
            button.setToolTip(self._blocked)
        self.prompt.setEnabled(not race.recording)

    def _lay_out(self) -> None:
        header = QWidget()
        set_fixed_height(header, HEADER_PX)
        row_of(
            *((WindowTitles(strings.TITLE, strings.SUBTITLE), 1), 4),
            *(self.start_button, self.again_button, self.stop_button, self.done_button),
            gap=8,
            margins=(20, 0, 12, 1),
            parent=header,
        )
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

"""How many files a question, a token, figures and a regenerated answer pass in the window.

Where the way to an end point is counted, its call stacks are recorded, so helpers that only return a value
are not counted. Where all is counted until it is painted, every file of `app` of which a function runs is.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from app.launch.scenario import ask
from app.shell.window import MainWindow
from core.events import Gauges, Token
from core.events.codec import WorkerEvent
from tests.app.stage import answer_view, click, ready, until

APP = f"{Path(__file__).parents[3] / 'app'}/"
# File and function; a token is stored, parsed, and shown by a gauge.
TOKEN = {
    ("session/chats/conversation.py", "write"),
    ("chat/answer_text.py", "extend"),
    ("gauges/speed.py", "_paint"),
}
REGENERATE = {
    ("chat/transcript.py", "replace_turn"),
    ("session/chats/conversation.py", "finish"),
    ("store/library.py", "save"),
}
SEND = {("controllers/link.py", "send")}


class Stacks:
    """The files on the call stack whenever one of `ends` is called."""

    def __init__(self, ends: set[tuple[str, str]]) -> None:
        self._missing = set(ends)
        self._ends = ends
        self.files: dict[str, None] = {}

    def __call__(self, frame: FrameType | None, event: str, argument: object) -> None:
        if event != "call" or frame is None or _place(frame) not in self._ends:
            return
        self._missing.discard(_place(frame))
        while frame is not None:
            if frame.f_code.co_filename.startswith(APP):
                self.files.setdefault(_place(frame)[0])
            frame = frame.f_back

    @property
    def is_complete(self) -> bool:
        return not self._missing


def _place(frame: FrameType) -> tuple[str, str]:
    return frame.f_code.co_filename.removeprefix(APP), frame.f_code.co_name


@contextmanager
def recorded(ends: set[tuple[str, str]]) -> Iterator[Stacks]:
    stacks = Stacks(ends)
    sys.setprofile(stacks)
    try:
        yield stacks
    finally:
        sys.setprofile(None)


async def test_a_question_a_token_and_a_regenerated_answer_pass_few_files(window: MainWindow) -> None:
    await ready(window)
    with recorded(SEND) as send:
        ask(window, "write 60 slowly")
    with recorded(TOKEN) as token:
        await until(lambda: token.is_complete)
    await ready(window)
    answer = answer_view(window)
    with recorded(REGENERATE) as regenerate:
        await click(answer.footer.buttons["redo"])
        await ready(window)
    files = [file for file in send.files if file != "launch/scenario.py"]
    assert send.is_complete
    assert len(files) <= 6, files
    assert len(token.files) <= 10, list(token.files)  # painting of the text included
    assert regenerate.is_complete
    assert len(regenerate.files) <= 9, list(regenerate.files)


# These have timers and tasks that run whatever happens.
IDLE = {"controllers/link.py", "controllers/titles.py", "launch/application.py"}


class Calls(Counter[tuple[str, str]]):
    """How often each function of `app` was called, by file and name."""

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(APP):
            self[_place(frame)] += 1

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self} - IDLE


class LayoutRequests(QObject):
    """Counts how often a layout is asked to lay its widgets out again."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


class Slowly:
    """Holds back what the worker sends, and passes on one event at a time until it is painted."""

    def __init__(self, window: MainWindow) -> None:
        self._link = window.controller.app.worker
        self._hear, self._link.hear = self._link.hear, self._keep
        self._kept: list[WorkerEvent] = []

    def _keep(self, event: object) -> None:
        if isinstance(event, Token | Gauges):
            self._kept.append(event)

    async def step(self) -> list[Token]:
        """The next whole step of the answer."""
        await until(lambda: len(self._kept) > 9)
        tokens = [each for each in self._kept if isinstance(each, Token)]
        end = next(number for number, each in enumerate(tokens, 1) if each.origin != "accepted")
        self._kept = [each for each in self._kept if each not in tokens[:end]]
        return tokens[:end]

    async def gauges(self) -> Gauges:
        await until(lambda: any(isinstance(each, Gauges) for each in self._kept))
        return next(each for each in self._kept if isinstance(each, Gauges))

    async def walk(self, *events: WorkerEvent) -> Calls:
        await asyncio.sleep(0.3)  # what was painted before, and figures that are shown four times a second
        calls = Calls()
        sys.setprofile(calls)
        try:
            for event in events:
                self._hear(event)
            await asyncio.sleep(0.2)
        finally:
            sys.setprofile(None)
        return calls


async def test_a_token_and_figures_pass_few_files_until_they_are_painted(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: answer_view(window) is not None and len(answer_view(window).body.table) > 30)
    # Its cursor blinks.
    window.views.composer.edit.setUpdatesEnabled(False)
    worker = Slowly(window)
    token = await worker.walk(*await worker.step())
    assert ("gauges/speed.py", "_paint") not in token
    assert ("richtext/text_canvas.py", "paintEvent") in token
    gauges = await worker.gauges()
    figures = await worker.walk(gauges)
    assert ("gauges/speed.py", "_paint") in figures
    requests = LayoutRequests()
    QApplication.instance().installEventFilter(requests)
    repeated = await worker.walk(replace(gauges, tokens_per_s=gauges.tokens_per_s + 1))
    QApplication.instance().removeEventFilter(requests)
    assert ("gauges/speed.py", "_paint") in repeated
    assert len(token.files) <= 31, sorted(token.files)
    assert len(figures.files) <= 29, sorted(figures.files)
    # What did not change is neither saved nor made or laid out again.
    assert repeated["gauges/instruments.py", "refresh"] == 1, "another gauge than Speed"
    assert not requests.count
    assert not repeated.files - {
        *("controllers/answering.py", "controllers/live.py", "controllers/page.py"),
        *("controllers/context_meter.py", "session/context.py", "session/chats/chats.py"),
        *("session/turn/turn.py", "session/turn/link_state.py", "shell/controller.py"),
        *("gauges/figures.py", "gauges/instruments.py", "gauges/speed.py", "gauges/strip.py"),
        *("chat/reading_state.py", "controls/shapes.py", "shell/chat_column.py", "shell/window.py"),
        *("theme/fonts.py", "theme/theme.py", "theme/zoom.py"),
    }
    assert repeated["controllers/context_meter.py", "_show"] == 0

"""How many files a question, a token and a regenerated answer pass in the window, each calling the next.

The call stacks at the end points are recorded, so helpers that only return a value are not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from app.launch.scenario import ask
from app.shell.window import MainWindow
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

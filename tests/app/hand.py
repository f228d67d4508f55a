"""Hand: a person at the window, in what they do and see. Journeys use it, so that the inside can change.

All actions are real key and mouse events. Every `await` that waits has a limit (`stage.until`).
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.session.chats.conversation import Answer
from app.shell.window import MainWindow
from tests.app.stage import click, press, ready, until


class Hand:
    """Acts in `window`."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window

    # ---- acting

    async def type(self, text: str) -> None:
        self.window.views.composer.set_text(text)
        self.window.views.composer.edit.setFocus()

    async def send(self, text: str) -> None:
        """Type a message and press Return, whatever becomes of it."""
        await self.type(text)
        await self.press(Qt.Key.Key_Return)

    async def ask(self, text: str) -> Answer:
        """Send a message and wait for the end of its answer."""
        await ready(self.window)
        asked = len(self.questions)
        await self.send(text)
        await until(lambda: len(self.questions) > asked and self.answer.over, what=f"no answer to “{text}”")
        await ready(self.window)
        return self.answer

    async def press(
        self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
    ) -> None:
        focus = QApplication.focusWidget()
        await press(self.window if focus is None else focus, key, modifiers)

    async def click(self, name: str, within: QWidget | None = None) -> None:
        """Click the visible button with that label or accessible name."""
        await click(self.button(name, within))

    def button(self, name: str, within: QWidget | None = None) -> QAbstractButton:
        """The visible button with that label or accessible name. Raises `LookupError`."""
        for each in (within or self.window).findChildren(QAbstractButton):
            if each.isVisible() and name in (each.accessibleName(), each.text()):
                return each
        raise LookupError(f"no visible button “{name}”")

    # ---- seeing

    @property
    def questions(self) -> list[str]:
        return [turn.user.content for turn in self.window.controller.chats.open.turns]

    @property
    def answer(self) -> Answer:
        return self.window.controller.chats.open.turns[-1].answer

    @property
    def footer(self) -> str:
        turn = self.window.controller.chats.open.turns[-1]
        shown = self.window.views.transcript.answer(turn.id)
        return shown.footer.stats.figures if shown else ""

    @property
    def draft(self) -> str:
        return self.window.views.composer.text

    @property
    def waiting(self) -> list[str]:
        """The messages in the list of waiting ones, as shown; empty if it is hidden."""
        shown = self.window.views.queue_list
        return [row.text for row in shown.rows] if shown.isVisible() else []

    @property
    def notice(self) -> str:
        """The notice over the message field; empty if there is none."""
        return self.window.views.notice_bar.text

    def reads(self, words: str) -> bool:
        """Whether assistive technology reads these words from something that can be seen."""
        seen = (each for each in self.window.findChildren(QWidget) if each.isVisible())
        return any(words in each.accessibleDescription() for each in seen)

    @property
    def keyboard(self) -> str:
        """What has the keyboard: `message` for the field, else an accessible name or a class."""
        focus = QApplication.focusWidget()
        if focus is None:
            return ""
        if focus is self.window.views.composer.edit:
            return "message"
        return focus.accessibleName() or type(focus).__name__

"""Each message is answered, waiting, in the message field, or removed by the person, whatever they do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from PySide6.QtCore import Qt

from app.chat.intents import Branch, EditAnswer, EditMessage, Regenerate
from app.session.turn.intents import Load, Restart
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from tests.app.hand import Hand
from tests.app.stage import asked, click, last, ready, until

_STEPS = 45
# What the worker does with a message that ends so.
_WORK = ("write 3", "write 90 slowly", "read 60 slowly", "break 9 slowly", "refuse")


class Person:
    """Does things at random, and knows which of their words must be somewhere."""

    def __init__(self, window: MainWindow, seed: int) -> None:
        self.window = window
        self.hand = Hand(window)
        self.random = random.Random(seed)
        self.words: set[str] = set()
        self.seen: set[str] = set()  # chats
        self.written = 0

    async def write(self) -> None:
        self.written += 1
        word = f"word{self.written}"
        self.words.add(word)
        does = self.random.choice(_WORK)
        await self.hand.type(f"{self.hand.draft} {word} {does}")

    async def send(self) -> None:
        self.window.views.composer.edit.setFocus()
        await self.hand.press(Qt.Key.Key_Return)

    async def stop(self) -> None:
        self.window.controller.asking.readiness.stop_running()

    async def edit_waiting(self) -> None:
        if rows := self.window.views.queue_list.rows:
            await click(self.random.choice(rows).edit_button)

    async def remove_waiting(self) -> None:
        if rows := self.window.views.queue_list.rows:
            row = self.random.choice(rows)
            self.words -= set(row.text.split())
            await click(row.remove_button)

    async def send_waiting(self) -> None:
        button = self.window.views.queue_list.send_button
        if button.isVisible() and button.isEnabled():
            await click(button)

    async def new_chat(self) -> None:
        self.window.controller.chat.start()

    async def another_chat(self) -> None:
        listed = self.window.controller.chats.listed()
        if listed:
            self.window.controller.chat.select(self.random.choice(listed).id)

    async def delete_chat(self) -> None:
        if self.window.controller.chats.open.turns:
            self.window.controller.chat.listing.delete(self.window.controller.chats.open.id)

    async def restore_chat(self) -> None:
        self.window.controller.chat.listing.undo()

    async def edit_sent(self) -> None:
        await self.write()
        self.with_turn(EditMessage)
        await self.write()

    async def edit_answer(self) -> None:
        self.with_turn(EditAnswer)
        if edited := self.window.views.transcript.edited:
            self.written += 1
            self.words.add(f"word{self.written}")
            edited.editor.area.set_value(f"{edited.editor.text} word{self.written}")

    async def answer_again(self) -> None:
        self.with_turn(self.random.choice((Regenerate, Branch)))

    def with_turn(self, intent: type) -> None:
        if turns := self.window.controller.chats.open.turns:
            self.window.views.transcript.intent.emit(intent(self.random.choice(turns).id))

    async def end_edit(self) -> None:
        """Whoever cancels an edit removes what they wrote there."""
        if self.window.controller.asking.readiness.edited:
            written = set(self.hand.draft.split())
            self.window.controller.asking.cancel_edit()
            self.words -= written & self.lost()

    async def load(self) -> None:
        if self.window.controller.link.phase is Phase.READY:
            self.window.controller.handle(Load("another-model"))

    async def restart(self) -> None:
        self.window.controller.handle(Restart())

    async def wait(self) -> None:
        await until(lambda: not self.window.controller.link.busy, what="still answering")

    def lost(self) -> set[str]:
        chats, edited = self.window.controller.chats, self.window.views.transcript.edited
        found = self.hand.draft + (f" {edited.editor.text}" if edited else "")
        self.seen |= {chats.open.id, *(each.id for each in (*chats.listed(), *chats.deleted()))}
        for chat_id in self.seen:
            with suppress(KeyError):  # an unused one, whose draft was joined to another's
                found += " " + " ".join(_texts(chats.get(chat_id)))
        return self.words - set(found.split())


def _texts(chat: object) -> list[str]:
    turns, queued, draft = chat.turns, chat.queued, chat.draft
    versions = [version for turn in turns for version in turn.versions]
    written = [text for each in versions for text in (each.user.content, each.answer.text)]
    return [*written, *(each.message.content for each in queued), draft.content]


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [0, 1, 2, 11])
async def test_nothing_typed_is_lost(window: MainWindow, seed: int) -> None:
    person = Person(window, seed)
    often: list[Callable[[], object]] = [person.write, person.send, person.wait] * 3
    rare = [
        *(person.stop, person.stop, person.edit_waiting, person.remove_waiting, person.send_waiting),
        *(person.new_chat, person.another_chat, person.delete_chat, person.edit_sent, person.end_edit),
        *(person.edit_sent, person.restore_chat, person.edit_answer, person.answer_again),
        *(person.load, person.restart),
    ]
    done: list[str] = []
    for _ in range(_STEPS):
        action = person.random.choice([*often, *rare])
        done.append(action.__name__)
        await action()
        assert not person.lost(), f"{person.lost()} lost after {done}"
    await ready(window)
    assert not person.lost(), f"{person.lost()} lost at the end of {done}"


async def test_a_draft_is_stored_while_typing_goes_on(window: MainWindow) -> None:
    chats, composer = window.controller.chats, window.views.composer
    for _ in range(200):
        composer.edit.insertPlainText("a")
        await asyncio.sleep(0.05)
        if chats.open.draft.content:
            break
    assert chats.open.draft.content


async def test_an_answer_stopped_before_its_first_token_leaves_the_message_field_alone(
    window: MainWindow,
) -> None:
    await asked(window, "write 2")
    await asked(window, "read 30 slowly write 3")
    before, controller = window.controller.chats.open.turns, window.controller
    controller.asking.edits.edit_answer(before[0].id)
    window.views.transcript.edited.editor.area.set_value("my own answer")
    controller.asking.regenerate()
    await until(lambda: controller.link.phase is Phase.READING)
    assert controller.chats.open.turns[0].answer.text == "my own answer"
    controller.asking.edits.undo()
    window.views.composer.set_text("next question")
    controller.asking.readiness.stop_running()
    await ready(window)
    assert window.views.composer.text == "next question"
    assert controller.chats.open.turns == before
    assert window.views.transcript.answer_text(before[-1].id) == last(window).text

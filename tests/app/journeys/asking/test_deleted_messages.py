"""Delete a question with its answer: what follows stays, Undo brings it back, the disk keeps nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.chat.user_message import UserMessage
from app.shell.window import MainWindow
from app.store.copies import Backups
from core.events import Attachment, EraseChats, EraseVectors, Generate
from tests.app.stage import Stage, answering, asked, click, ready, sent, stop, until


def questions(window: MainWindow) -> list[str]:
    return [turn.user.content for turn in window.controller.chats.open.turns]


def messages(window: MainWindow) -> list[UserMessage]:
    found = window.views.transcript.widget().findChildren(UserMessage)
    return sorted((each for each in found if each.isVisible()), key=lambda each: each.y())


def shown(window: MainWindow) -> list[str]:
    found = messages(window)
    return [each.body.accessibleDescription() for each in found]


async def test_what_follows_stays_and_undo_brings_it_back(window: MainWindow) -> None:
    for question in ("write 3 of alpha", "write 3 of beta", "write 3 of gamma"):
        await asked(window, question)
    before = window.controller.chats.open
    window.controller.asking.edits.delete_message(before.turns[1].id)
    assert questions(window) == shown(window) == ["write 3 of alpha", "write 3 of gamma"]
    commands = sent(window, Generate)
    await asked(window, "write 2")
    assert "beta" not in str(commands[0].messages)
    await click(window.views.notice_bar.action_button)
    assert questions(window) == ["write 3 of alpha", "write 3 of beta", "write 3 of gamma", "write 2"]
    assert shown(window) == questions(window)
    assert window.controller.chats.open.turns[:3] == before.turns


async def test_menu_button_and_keys_delete_and_undo(window: MainWindow) -> None:
    await asked(window, "write 3 of alpha")
    await asked(window, "write 3 of beta")
    actions = window.menu_actions
    actions["delete_message"].trigger()  # the last one
    assert questions(window) == ["write 3 of alpha"]
    window.views.composer.edit.setFocus()
    actions["undo"].trigger()  # nothing was typed since
    assert questions(window) == ["write 3 of alpha", "write 3 of beta"]
    first, _ = messages(window)
    first.body.setFocus(Qt.FocusReason.TabFocusReason)
    actions["delete_message"].trigger()  # the focused one
    assert questions(window) == ["write 3 of beta"]
    actions["undo"].trigger()
    first = messages(window)[0]
    first.body.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(first.body, Qt.Key.Key_Delete)
    assert questions(window) == ["write 3 of beta"]
    await asyncio.sleep(0)
    (left,) = messages(window)
    await click(left.delete_button)
    assert questions(window) == []
    assert window.views.pages.currentWidget() is window.views.first_page
    assert window.controller.chats.listed() == ()
    await click(window.views.notice_bar.action_button)
    assert questions(window) == ["write 3 of beta"]


async def test_not_while_the_chat_is_answered(window: MainWindow) -> None:
    await asked(window, "write 3")
    await answering(window)
    count = len(questions(window))
    window.controller.asking.edits.delete_message(window.controller.chats.open.turns[0].id)
    assert len(questions(window)) == count
    assert "when the current answer is complete" in window.views.notice_bar.text
    await stop(window)


async def test_the_numbers_of_later_documents_follow(window: MainWindow) -> None:
    composer = window.views.composer
    for name in ("first", "second"):
        composer.attach(Attachment(f"{name}.txt", f"The {name} document. " * 40))
        await asked(window, f"write 3 about {name}")
    before = window.controller.chats.open
    window.controller.asking.edits.delete_message(before.turns[0].id)
    assert [each.name for each in window.controller.chats.open.attachments] == ["second.txt"]
    window.controller.asking.edits.undo()
    assert window.controller.chats.open.turns == before.turns


async def test_nothing_of_it_stays_on_the_disk(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    window.views.composer.attach(Attachment("secret.txt", "The word is Quetzalcoatlus. " * 20))
    await asked(window, "write 3 about Pterodactylus")
    await asked(window, "write 3 about boats")
    library = window.controller.home.library
    assert library.flush()
    Backups(tmp_path / "chats.db").make()
    secrets = (b"Quetzalcoatlus", b"Pterodactylus")

    def found() -> list[str]:
        files = [each for each in tmp_path.rglob("*") if each.is_file()]
        return [each.name for each in files if any(word in each.read_bytes() for word in secrets)]

    assert len(found()) > 1  # in the database and its backup
    commands = sent(window, EraseChats, EraseVectors)
    window.controller.asking.edits.delete_message(window.controller.chats.open.turns[0].id)
    assert library.flush()
    await until(lambda: not found(), what="something of the deleted question is on the disk")
    assert {type(each) for each in commands} == {EraseChats, EraseVectors}
    await ready(window)
    assert questions(window) == ["write 3 about boats"]

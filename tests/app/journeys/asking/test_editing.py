"""Editing a message that was sent: in a new chat if it is an earlier one, and its context is counted once."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt

from app.chat.intents import QueueMessage
from app.chat.user_message import UserMessage
from app.session.chats.conversation import NOTHING_WRITTEN, QueuedMessage
from app.shell.window import MainWindow
from core.events import Attachment, Message
from tests.app.stage import asked, click, last, press, ready, until


async def test_editing_a_message_that_was_sent(window: MainWindow) -> None:
    views, controller, composer = window.views, window.controller, window.views.composer
    await asked(window, "write 3")
    await asked(window, "write 4")
    first = controller.chats.open
    composer.set_text("a draft that waits")
    # An earlier one goes on in a new chat.
    await click(views.transcript.findChildren(UserMessage)[0].edit_button)
    assert composer.text == "write 3"
    assert "new chat" in views.editing_bar.text
    composer.set_text("write 6")
    await press(window, Qt.Key.Key_Return)
    await ready(window)
    assert controller.chats.open.id != first.id
    assert [turn.user.content for turn in controller.chats.open.turns] == ["write 6"]
    assert controller.chats.get(first.id).turns == first.turns
    assert controller.chats.get(first.id).draft.content == "a draft that waits"
    assert [each.title for each in controller.chats.listed()] == ["write 3 (2)", "write 3"]
    # One that is refused is back in the composer, and what it replaced is there.
    controller.asking.edit()
    composer.set_text("refuse this one")
    await press(window, Qt.Key.Key_Return)
    await ready(window)
    assert [turn.user.content for turn in controller.chats.open.turns] == ["write 6"]
    assert len(last(window).tokens) == 7
    assert composer.text == "refuse this one"
    # Leaving the chat ends editing, and its draft comes back.
    controller.chat.select(first.id)
    controller.asking.edit()
    controller.chat.start()
    assert views.editing_bar.isHidden()
    composer.edit.undo()  # what was written elsewhere
    assert composer.text == ""
    controller.chat.select(first.id)
    assert composer.text == "a draft that waits"
    # A message that was not changed is not in the draft, though its document was counted meanwhile.
    controller.chat.start()
    controller.asking.submit(Message("user", "write 3", (Attachment("a.txt", "Some words. " * 30),)))
    await ready(window)
    asked_in = controller.chats.open.id
    controller.asking.edit()
    await until(lambda: composer.attachments[0].tokens > 0, what="not counted")
    controller.chat.start()
    assert controller.chats.get(asked_in).draft == NOTHING_WRITTEN

    # The context is counted with its new words instead of the old ones.
    controller.chat.start()
    composer.set_text("")
    pill = window.views.composer.pill
    used: list[int] = []
    for question in ("write 30 of the harbour", "write 100 of the tide and of the pilots"):
        await asked(window, question)
        used.append(pill.used_tokens)
    first, second = used
    assert 0 < first < second
    # The last one: what stood before it, and it.
    window.controller.asking.edit()
    await until(lambda: pill.used_tokens > first, what="not counted")
    assert pill.used_tokens < second
    window.controller.asking.cancel_edit()
    await until(lambda: pill.used_tokens == second, what="not counted again")
    # The first one: nothing stood before it.
    window.controller.asking.edit(window.controller.chats.open.turns[0].id)
    await until(lambda: 0 < pill.used_tokens < first, what="counted with what comes after it")


async def test_an_edit_and_its_draft_stay_in_the_open_chat(window: MainWindow, tmp_path: Path) -> None:
    controller, composer = window.controller, window.views.composer
    chats, listing, asking = controller.chats, controller.chat.listing, controller.asking
    (tmp_path / "a.txt").write_text("words")
    await asked(window, "write 2")
    other = chats.open.id
    controller.chat.start()
    await asked(window, "write 3")
    composer.set_text("a draft")
    composer.attach_files([tmp_path])
    controller.chat.select(other)
    controller.chat.select(chats.listed()[0].id)
    asking.edit()
    composer.set_text("write 4")
    listing.delete(other)
    listing.move(chats.open.id, chats.projects.add("Tides").id)
    composer.intent.emit(QueueMessage(composer.message()))
    assert "cannot be queued" in window.views.notice_bar.text
    assert (asking.readiness.edited, composer.text) == (chats.open.turns[-1].id, "write 4")
    # What starts an answer ends the edit and keeps it.
    asking.regenerate(asking.readiness.edited)
    await ready(window)
    await until(lambda: [each.text for each in composer.attachments] == ["words"], what="not read again")
    asking.edit()
    chats.keep(chats.open.with_queued((QueuedMessage(Message("user", "write 5")),)))
    asking.send_queued()
    await ready(window)
    assert [turn.user.content for turn in chats.open.turns] == ["write 3", "write 5"]
    assert composer.text == "a draft\n\nwrite 4"

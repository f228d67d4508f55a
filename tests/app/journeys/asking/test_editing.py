"""Editing a message that was sent: the context is counted with its new words instead of the old ones."""

from __future__ import annotations

from app.shell.window import MainWindow
from tests.app.stage import asked, until


async def test_an_edited_message_is_counted_once(window: MainWindow) -> None:
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

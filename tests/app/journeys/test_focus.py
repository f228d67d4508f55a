"""A control that vanishes gives the keyboard back to the message field."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from app.session.trouble import Trouble
from app.shell.window import MainWindow
from core.events import Attachment, Message
from tests.app.hand import Hand
from tests.app.stage import click, ready


def controls(window: MainWindow) -> list[QWidget]:
    """All that can have the keyboard now, without the message field."""
    field = window.views.composer.edit
    return [
        each
        for each in window.findChildren(QWidget)
        if each.focusPolicy() & Qt.FocusPolicy.TabFocus
        and each.isVisible()
        and each.isEnabled()
        and each.focusProxy() is None
        and each is not field
    ]


async def everything_shown(window: MainWindow) -> Hand:
    hand, views = Hand(window), window.views
    await ready(window)
    await hand.ask("write 9")
    await hand.ask("write 9")
    views.notice_bar.show_notice("Exported", "Show", lambda: None)
    views.banner.show_trouble(Trouble("Stopped.", "Memory.", "restart", log=("a line",)))
    views.editing_bar.show_text("Editing")
    waiting = [Message("user", "one"), Message("user", "two")]
    views.queue_list.show_messages(waiting, "Waiting", offered=True, can_send=True)
    views.composer.attach(Attachment("a.txt", "words"))
    await asyncio.sleep(0.05)
    return hand


async def test_whatever_vanishes_the_keyboard_goes_to_the_message_field(window: MainWindow) -> None:
    hand = Hand(window)
    extra = QPushButton("Extra", window)
    extra.show()
    extra.setFocus()
    assert hand.keyboard == "QPushButton"
    extra.deleteLater()
    await asyncio.sleep(0.05)
    assert hand.keyboard == "message"

    window.controller.chat.start()
    hand = Hand(window)
    await hand.type("write 20 slowly")
    await click(window.views.composer.send_button)
    assert hand.keyboard == "message"
    await hand.press(Qt.Key.Key_Space)
    assert hand.questions == ["write 20 slowly"]
    assert hand.draft == " "
    await ready(window)
    assert hand.keyboard == "message"

    window.controller.chat.start()
    hand = Hand(window)
    await hand.ask("write 3")
    window.menu_actions["delete"].trigger()
    await click(window.views.notice_bar.action_button)
    assert hand.questions == ["write 3"]
    assert hand.keyboard == "message"

    window.controller.chat.start()
    hand = await everything_shown(window)
    found = controls(window)
    assert len(found) > 25
    for each in found:
        if not (each.isVisible() and each.isEnabled()):
            continue  # it went with an earlier one
        name = each.accessibleName() or type(each).__name__
        for vanish in (each.setDisabled, each.setHidden):
            each.setFocus(Qt.FocusReason.TabFocusReason)
            assert QApplication.focusWidget() is each
            vanish(True)
            assert hand.keyboard == "message", f"after {name}: {hand.keyboard}"
            before = hand.draft
            await hand.press(Qt.Key.Key_Space)
            assert hand.draft == before + " ", f"after {name}"
            vanish(False)
        assert window.views.composer.property("ground") == "field-focus"

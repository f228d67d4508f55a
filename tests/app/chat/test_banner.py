"""The banner: what it shows, its buttons, and its log."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.bars import WIDTH_PX, Banner
from app.session.trouble import Remedy, Trouble

DIED = Trouble("The engine stopped.", "It was ended by signal SIGKILL.", "restart", ("one", "two", "three"))


@pytest.fixture
def banner(qtbot: QtBot) -> Banner:
    widget = Banner()
    qtbot.addWidget(widget)
    widget.resize(WIDTH_PX, 200)
    return widget


@pytest.mark.parametrize(("remedy", "label"), [("restart", "Restart Engine"), ("load", "Try Again")])
def test_the_button_requests_the_remedy(qtbot: QtBot, banner: Banner, remedy: Remedy, label: str) -> None:
    banner.show_trouble(Trouble("No model.", "", remedy))
    assert banner.remedy_button.text() == banner.remedy_button.accessibleName() == label
    with qtbot.waitSignal(banner.remedy_requested, timeout=20_000) as requested:
        qtbot.keyClick(banner.remedy_button, Qt.Key.Key_Space)
    assert requested.args == [remedy]
    assert banner.isVisible()


def test_details_reveal_the_log_and_hide_it_again(qtbot: QtBot, banner: Banner) -> None:
    long = Trouble("Gone.", "", "restart", tuple(f"line {n}" for n in range(200)))
    banner.show_trouble(DIED)
    low = banner.sizeHint().height()
    for hide in (lambda: banner.details_button.click(), lambda: banner.show_trouble(long)):
        assert banner.log_view.isHidden()
        qtbot.mouseClick(banner.details_button, Qt.MouseButton.LeftButton)
        assert banner.log_view.isVisible()
        assert banner.log_view.toPlainText() == "one\ntwo\nthree"
        assert banner.log_view.font().fixedPitch()
        assert banner.sizeHint().height() > low
        assert banner.details_button.text() == "Hide Details"
        hide()
    # Another trouble has closed it; a long log shows its end.
    assert banner.log_view.isHidden()
    assert banner.accessibleName().startswith("Gone.")
    qtbot.mouseClick(banner.details_button, Qt.MouseButton.LeftButton)
    bar = banner.log_view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    assert banner.log_view.height() < 200
    banner.show_trouble(Trouble("The prompt is too long.", "Shorten it."))
    assert banner.remedy_button.isHidden()
    assert banner.details_button.isHidden()
    assert banner.close_button.isVisible()


def test_one_of_several_is_counted(banner: Banner) -> None:
    assert banner.isHidden()
    banner.show_trouble(DIED)
    assert banner.count_label.isHidden()
    assert banner.next_button.isHidden()
    banner.show_trouble(DIED, 2, 3)
    assert banner.count_label.text() == "2 of 3"
    assert banner.accessibleName().startswith("2 of 3 The engine stopped.")
    banner.show_trouble(DIED)
    assert banner.next_button.isHidden()
    banner.clear()
    assert banner.isHidden()
    assert banner.trouble is None

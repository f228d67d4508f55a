"""The choice of a chat's tools: the button's figures, the popover by mouse and keys, and what it says."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer
from app.chat.tools import strings
from app.chat.tools.choice import ServerOffer, ToolChoice, ToolOffer
from app.session.tools.calls import ChosenTool

READ, WRITE = ChosenTool("Files", "read"), ChosenTool("Files", "write")
FILES = ServerOffer(
    "Files", (ToolOffer("read", "Reads a file.", 184), ToolOffer("write", "Writes a file.", 160))
)
CHOICE = ToolChoice((FILES, ServerOffer("Time", (), "The program “uvx” was not found.", failed=True)))


class Chooser:
    """Keeps what is chosen, as the controller does."""

    def __init__(self, composer: Composer) -> None:
        self.tools = composer.tools
        self.calls: list[str] = []
        self.tools.wire(self.choose, lambda: self.calls.append("opened"), lambda: self.calls.append("manage"))
        self.tools.show_choice(CHOICE)

    def choose(self, chosen: tuple[ChosenTool, ...]) -> None:
        self.tools.show_choice(replace(self.tools.choice, chosen=chosen))

    @property
    def chosen(self) -> tuple[ChosenTool, ...]:
        return self.tools.choice.chosen


@pytest.fixture
def chooser(qtbot: QtBot) -> Chooser:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.resize(760, 120)
    with qtbot.waitExposed(composer):
        composer.show()
    composer.activateWindow()
    return Chooser(composer)


def click(widget: object) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)  # type: ignore[call-overload]


def test_tools_are_chosen_one_by_one_and_by_server(chooser: Chooser, qtbot: QtBot) -> None:
    button, popover = chooser.tools, chooser.tools.popover
    assert button.text() == "Tools"
    click(button)
    assert popover.isVisible()
    assert chooser.calls == ["opened"]
    assert popover.sum.text() == "None chosen"
    popover.boxes[READ].setFocus()
    QTest.keyClick(popover.boxes[READ], Qt.Key.Key_Space)
    assert chooser.chosen == (READ,)
    assert button.text() == "1 tool, 184 tokens"
    assert button.accessibleName() == button.text()
    assert not popover.server_boxes["Files"].isChecked()
    popover.server_boxes["Files"].setFocus()
    QTest.keyClick(popover.server_boxes["Files"], Qt.Key.Key_Space)
    assert chooser.chosen == (READ, WRITE)
    assert button.text() == "2 tools, 344 tokens"
    assert popover.sum.text() == "2 chosen, 344 tokens"
    QTest.keyClick(popover.server_boxes["Files"], Qt.Key.Key_Space)
    assert chooser.chosen == ()
    QTest.keyClick(popover, Qt.Key.Key_Escape)
    assert not popover.isVisible()


def test_tools_that_are_not_counted_have_no_figure(chooser: Chooser) -> None:
    uncounted = replace(FILES, tools=(ToolOffer("read"), FILES.tools[1]))
    chooser.tools.show_choice(ToolChoice((uncounted,), (READ, WRITE)))
    assert chooser.tools.text() == "2 tools"
    assert chooser.tools.popover.boxes[WRITE].accessibleDescription() == "Writes a file."


def test_it_says_why_there_are_none(chooser: Chooser) -> None:
    popover = chooser.tools.popover
    chooser.tools.show_choice(replace(CHOICE, chosen=(READ,), why_not="This model cannot use tools."))
    assert chooser.tools.toolTip() == "This model cannot use tools."
    chooser.tools.open()
    assert popover.why_not.text() == "This model cannot use tools."
    assert popover.why_not.isVisible()
    chooser.tools.show_choice(ToolChoice())
    assert not popover.why_not.isVisible()
    assert popover.nothing.text() == strings.NO_SERVERS
    assert popover.nothing.isVisible()
    assert popover.manage.text() == "Add Servers…"
    click(popover.manage)
    assert chooser.calls == ["opened", "manage"]
    assert not popover.isVisible()

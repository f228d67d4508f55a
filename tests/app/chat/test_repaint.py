"""A change of the application's palette repaints every widget of the chat, without signals of the theme."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.bars import Banner, EditingBar, NoticeBar, QueueList
from app.chat.composer import Composer
from app.chat.composer_tools import ContextUse
from app.chat.first_page import FirstPage
from app.chat.tokens import Legend
from app.chat.transcript import Transcript
from app.session.trouble import Trouble
from app.theme.theme import theme
from core.events import Attachment, Message
from tests.app.chat.written import FERRY, finished, tokens_of


class Painted(QObject):
    """The widgets that were painted."""

    def __init__(self) -> None:
        super().__init__()
        self.widgets: set[QObject] = set()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.widgets.add(watched)
        return False


def test_every_visible_widget_is_painted_in_the_new_colours(qtbot: QtBot) -> None:
    application = QApplication.instance()
    before = application.palette()
    application.setPalette(theme.qpalette())
    window = QWidget()
    qtbot.addWidget(window)
    transcript, composer = Transcript(), Composer()
    banner, notice, queue, editing = Banner(), NoticeBar(), QueueList(), EditingBar()
    column = QVBoxLayout(window)
    for part in (banner, transcript, FirstPage(), notice, queue, editing, composer, Legend()):
        column.addWidget(part)
    window.resize(900, 1600)
    with qtbot.waitExposed(window):
        window.show()
    transcript.add_user("t", Message("user", "When?", (Attachment("ferry.md", "At nine."),)))
    transcript.begin_answer("t")
    transcript.append_tokens("t", tokens_of(FERRY))
    transcript.finish_answer("t", finished())
    composer.attach(Attachment("berths.csv", "north,1"))
    composer.pill.show_context(ContextUse(100, 0, 0, 1000))
    banner.show_trouble(Trouble("Stopped.", "It ran out of memory.", "restart"))
    notice.show_notice("Exported 1 chat", "Show in Folder")
    queue.show_messages([Message("user", "Next?")], "Sent after this answer", offered=False, can_send=False)
    editing.show_text("You are editing a message.")
    qtbot.wait(50)
    shown = [each for each in window.findChildren(QWidget) if each.isVisible() and _is_ours(each)]
    assert len({type(each) for each in shown}) >= 6
    painted = Painted()
    for each in shown:
        each.installEventFilter(painted)
    try:
        theme.set_scheme("dark")
        application.setPalette(theme.qpalette())
        qtbot.wait(50)
        missing = {
            type(each).__name__
            for each in shown
            if each not in painted.widgets and not each.visibleRegion().isEmpty()
        }
        assert not missing
        assert composer.edit.palette().text().color() == theme.color("text")
    finally:
        application.setPalette(before)


def _is_ours(widget: QWidget) -> bool:
    bases = [base for base in type(widget).__mro__ if base.__module__.startswith("app.chat.")]
    return any("paintEvent" in vars(base) for base in bases)

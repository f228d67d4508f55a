"""Someone who comes from ChatGPT, as a program of its own on an X display.

An export is chosen in File > Import Chats, its chat is opened in the sidebar and continued with the starter
model. As `new_user`, with the real worker, real keys and a real mouse.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QLineEdit, QMenu

from app.launch.opening import open_window
from app.shell.window import MainWindow
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, open_section, ready, set_number
from tests.core.chat_archives import samples

TITLE = "Lighthouse 2"
NEXT = "Name one colour."


def write_export(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(samples.chatgpt_archive([samples.chatgpt_chat(number) for number in (1, 2, 3)]))


async def first(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    export = Path(sys.argv[2]).with_name("export.zip")
    write_export(export)
    await ready(hands)

    bar = window.menuBar()
    (file_menu,) = [each for each in bar.findChildren(QMenu) if each.title().replace("&", "") == "File"]
    await hands.click(bar, bar.actionGeometry(file_menu.menuAction()).center())
    await hands.until(file_menu.isVisible, "the File menu is open")
    hands.step("the File menu")
    await hands.choose(file_menu, window.menu_actions["import"])
    await hands.until(lambda: bool(window.findChildren(QFileDialog)), "a file is to be chosen")
    (dialog,) = window.findChildren(QFileDialog)
    (field,) = [each for each in dialog.findChildren(QLineEdit) if each.objectName() == "fileNameEdit"]
    await hands.click(field)
    await hands.press("ctrl+a")
    await hands.type(str(export))
    await hands.press("Return")
    await hands.until(lambda: len(controller.chats.listed()) == 3, "three chats are imported")
    await hands.until(lambda: "Imported 3 chats from ChatGPT" in views.notice_bar.text, "it says so")
    hands.step(views.notice_bar.text)

    chats = views.sidebar.list
    (chat_id,) = [each.id for each in controller.chats.listed() if each.title == TITLE]
    index = next(
        chats.model().index(row, 0)
        for row in range(chats.model().rowCount())
        if chats.model().index(row, 0).data() == TITLE
    )
    await hands.click(chats.viewport(), chats.visualRect(index).center())
    await hands.until(lambda: controller.chats.open.id == chat_id, "its chat is open")
    turns = controller.chats.open.turns
    assert [len(turn.versions) for turn in turns] == [2, 2]
    assert views.transcript.answer_text(turns[-1].id) == "The lamp is from 1902."
    hands.step("the imported chat is open")
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 12)
    await ask(hands, NEXT)
    answer = await answered(hands)
    finished = answer.finished
    assert finished
    assert finished.stats.prompt_tokens > 60  # it has read the imported questions and answers
    hands.step(f"continued: {answer.text!r}")
    await ready(hands)
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def again(window: MainWindow) -> int:
    hands, controller = Hands(window), window.controller
    await ready(hands)
    assert len(controller.chats.open.turns) == 3
    assert len(controller.chats.listed()) == 3
    hands.step("and still there after a restart")
    await hands.click(window.views.composer.edit)  # without a window manager a click gives the focus
    await hands.press("ctrl+q")
    await window.closed()
    return 0


if __name__ == "__main__":
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))

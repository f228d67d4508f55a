"""A project with a spreadsheet, as a program of its own on an X display: `first`, and `again`.

Created by keys, its spreadsheet chosen in the file sheet, a chat started in it, asked, dragged out and in;
after a restart the project is deleted with its chats, and that is undone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QDialog, QFileDialog

from app.controls.sheets import Question
from app.features.projects import ProjectSheet
from app.launch.opening import open_window
from app.panels.chat_delegate import new_chat_rect
from app.shell.window import MainWindow
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, open_section, ready, set_number
from tests.core.documents.made import write_xlsx

NAME = "Harbour"
PROMPT = "Answer in one sentence."
QUESTION = "When is high water in May?"
ROWS = (("A1", "Month"), ("B1", "High water"), ("A2", "May"), ("B2", 12.5))


async def opened(hands: Hands, kind: type[QDialog], parent: QDialog | None = None) -> QDialog:
    def found() -> list[QDialog]:
        return [each for each in (parent or hands.window).findChildren(kind) if each.isVisible()]

    await hands.until(lambda: bool(found()), f"a {kind.__name__} is open")
    return found()[0]


def row(window: MainWindow, row_id: str) -> QRect:
    chats = window.views.sidebar.list
    return chats.visualRect(chats._rows.index_of(row_id))


async def first(window: MainWindow) -> int:
    hands, views, chats = Hands(window), window.views, window.controller.chats
    path = write_xlsx(Path(sys.argv[2]).parent / "Tides.xlsx", {"Tides": ROWS})
    await ready(hands)
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 16)
    await hands.click(views.composer.edit)
    await hands.press("ctrl+shift+n")
    sheet = await opened(hands, ProjectSheet)
    assert isinstance(sheet, ProjectSheet)
    await hands.type(NAME)
    await hands.press("Tab")
    await hands.type(PROMPT)
    await hands.until(lambda: sheet.system_prompt.value == PROMPT, "the system prompt is typed")
    await hands.click(sheet.add_button)
    await opened(hands, QFileDialog, sheet)
    await hands.type(str(path))
    await hands.press("Return")
    await hands.until(lambda: sheet.save.isEnabled() and bool(sheet.documents), "the spreadsheet is read")
    hands.step("a project with a spreadsheet")
    await hands.click(sheet.save)
    await hands.until(lambda: bool(chats.projects.listed()), "the project is created")
    (project,) = chats.projects.listed()
    assert (project.name, project.system_prompt, len(project.documents)) == (NAME, PROMPT, 1)

    viewport = views.sidebar.list.viewport()
    await hands.click(viewport, new_chat_rect(row(window, project.id)).center())
    await hands.until(lambda: len(views.composer.attachments) == 1, "a new chat has the spreadsheet")
    assert views.header.title == f"New chat in “{NAME}”"
    hands.step("a new chat in it")
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 16)
    await ask(hands, QUESTION)
    answer = await answered(hands)
    turn = chats.open.turns[0]
    assert "12.5" in turn.user.attachments[0].text
    assert answer.finished
    assert answer.finished.effective.settings.chat.system_prompt == PROMPT
    chat_id = chats.open.id
    assert [each.id for each in chats.in_project(project.id)] == [chat_id]
    hands.step(f"asked in the project: {answer.text!r}")

    place = row(window, chat_id).center()
    await hands.drag(viewport, place, QPoint(place.x(), viewport.height() - 40))
    await hands.until(lambda: not chats.in_project(project.id), "the chat is dragged out")
    hands.step("dragged out")
    await hands.drag(viewport, row(window, chat_id).center(), row(window, project.id).center())
    await hands.until(lambda: bool(chats.in_project(project.id)), "and in again")
    hands.step("and in again")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def again(window: MainWindow) -> int:
    hands, sidebar, chats = Hands(window), window.views.sidebar, window.controller.chats
    await ready(hands)
    (project,) = chats.projects.listed()
    (chat,) = chats.in_project(project.id)
    assert chats.open.id == chat.id
    hands.step("opened again")
    await hands.click(sidebar.list.viewport(), row(window, chat.id).center())
    await hands.press("Left", "Left")
    await hands.until(lambda: bool(chats.projects.listed()[0].folded), "the project is folded by keys")
    await hands.press("Delete")
    question = await opened(hands, Question)
    assert isinstance(question, Question)
    hands.step("asked what becomes of its chats")
    await hands.click(question.buttons["delete"])
    await hands.until(lambda: not chats.projects.listed(), "the project is deleted")
    assert [each.id for each in chats.deleted()] == [chat.id]
    await hands.click(sidebar.undo_bar.undo_button)
    await hands.until(lambda: bool(chats.projects.listed()), "and restored")
    assert chats.open.id == chat.id
    hands.step("restored with its chat")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


if __name__ == "__main__":
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))

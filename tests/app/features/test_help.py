"""The help: what it names exists in the window, its links lead somewhere, it is short, and it is found."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.features import help
from app.features.help import (
    MEASURED,
    MEASURING,
    NOT_MEASURED,
    NOTHING_FOUND,
    HelpPage,
    HelpWindow,
    help_pages,
)
from app.shell.commands import MENUS, all_commands
from app.shell.window import MainWindow
from app.theme.theme import Scheme, theme
from core.settings import Settings, declared
from core.settings.window import WindowSettings
from tests.app.contrast import TEXT, ratio
from tests.processes import command_line
from tests.test_words import commands

KEYS = (("File", (("New Chat", "Ctrl+N"), ("Zoom Out", "Ctrl+-"))),)
PAGES = help_pages(KEYS)


def names_in_window() -> set[str]:
    """Menus, menu items, buttons, settings and their values, without `…` and `&`."""
    found = {menu.title for menu in MENUS} | set(commands().values())
    for command in all_commands():
        found |= {command.title, command.title_on}
    for root in (Settings, WindowSettings):
        for setting in declared(root):
            found |= {setting.title, *setting.labels.values()}
    return {name.replace("&", "").rstrip("…") for name in found if name}


def unknown_names(markdown: str) -> list[str]:
    """Names in bold that nothing in the window has."""
    menus = {
        menu.title.replace("&", ""): {
            each.title.rstrip("…") for group in menu.groups for each in group if each.act or each.role
        }
        for menu in MENUS
    }
    known, wrong = names_in_window(), []
    for name in re.findall(r"\*\*(.+?)\*\*", markdown, re.DOTALL):
        menu, arrow, item = (part.strip().rstrip("…") for part in name.partition(">"))
        if (arrow and item not in menus.get(menu, ())) or (not arrow and menu not in known):
            wrong.append(name)
    return wrong


@pytest.mark.sweep
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page: HelpPage) -> None:
    assert unknown_names(page.markdown) == []
    if page.name != "shortcuts":
        assert page.markdown.count("**") >= 2
    assert len(page.markdown.split()) < 260
    assert page.markdown.startswith(f"# {page.title}\n")
    names = {each.name for each in PAGES}
    for link in re.findall(r"\]\(([^)]+)\)", page.markdown):
        assert link.removesuffix(".md") in names


def test_no_word_of_developers_is_used() -> None:
    for page in PAGES:
        found = re.search(
            r"\b(token ids?|logits?|KV|prefill|speculat\w+|SpecPrefill|n-gram)\b", page.markdown
        )
        assert found is None, (page.name, found)


@pytest.mark.sweep
async def test_the_page_of_shortcuts_has_every_key(window: MainWindow) -> None:
    window.menu_actions["shortcuts"].trigger()
    beside = window.windows.find("help")
    assert beside.page.name == "shortcuts"
    text = beside.text.toPlainText()
    for command in all_commands():
        if command.keys and command.act is not None:
            assert command.title.rstrip("…") in text
    assert "Ctrl+Shift+R" in text
    assert "Ctrl+-" in text
    window.menu_actions["help"].trigger()
    assert window.windows.find("help") is beside


@pytest.fixture
def helping(qtbot: QtBot) -> HelpWindow:
    widget = HelpWindow(PAGES)
    qtbot.addWidget(widget)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def shown(window: HelpWindow) -> list[str]:
    rows = range(window.list.count())
    return [window.pages[row].name for row in rows if not window.list.item(row).isHidden()]


def test_pages_are_rendered(helping: HelpWindow) -> None:
    for page in helping.pages:
        helping.show_page(page.name)
        text = helping.text.toPlainText()
        assert text.startswith(page.title)
        assert not re.search(r"\*\*|^#|\]\(|\{shortcuts\}|\|---", text, re.MULTILINE)


def test_search_finds_pages_and_marks_the_words(helping: HelpWindow) -> None:
    helping.search.setText("spreadsheets")
    assert shown(helping) == ["attach"]
    assert helping.page.name == "attach"
    assert len(helping.text.extraSelections()) == 1
    helping.search.results_wanted.emit()
    assert helping.text.textCursor().selectedText() == "spreadsheets"
    for words in ("citation", "sources"):
        helping.search.setText(words)
        assert "ask" in shown(helping)
    helping.search.setText("larger MODEL")
    helping.search.results_wanted.emit()
    assert helping.text.textCursor().selectedText().lower() in ("larger", "model")
    assert {"trouble"} <= set(shown(helping)) < {page.name for page in PAGES}
    for absent in ("**", "|---|", "zebra"):
        helping.search.setText(absent)
        assert shown(helping) == []
    assert helping.titles.says == NOTHING_FOUND
    helping.search.setText("")
    assert shown(helping) == [page.name for page in PAGES]
    assert helping.titles.says == ""
    assert helping.text.extraSelections() == []


def test_links_open_pages_and_only_others_the_browser(
    helping: HelpWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    helping.search.setText("trouble")
    helping.text.anchorClicked.emit(QUrl("models.md"))
    assert helping.page.name == "models"
    assert opened == []
    helping.text.anchorClicked.emit(QUrl("https://example.org/models.md"))
    assert opened == ["https://example.org/models.md"]


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_list_of_pages_can_be_read(helping: HelpWindow, qapp: QApplication, scheme: Scheme) -> None:
    before = qapp.palette()
    theme.set_scheme(scheme)
    qapp.setPalette(theme.qpalette())
    row = helping.list.visualItemRect(helping.list.item(1))
    image = helping.list.viewport().grab(row).toImage()
    paper = image.pixelColor(image.width() - 1, 0)
    spots = ((x, y) for x in range(image.width()) for y in range(image.height()))
    assert max(ratio(image.pixelColor(x, y), paper) for x, y in spots) > TEXT
    qapp.setPalette(before)


@pytest.mark.parametrize("zoom", [1.0, 1.5])
def test_rows_have_their_height_when_the_window_is_first_shown(qtbot: QtBot, zoom: float) -> None:
    theme.set_zoom(zoom)
    helping = HelpWindow(PAGES)
    qtbot.addWidget(helping)
    with qtbot.waitExposed(helping):
        helping.show()
    rows = [helping.list.item(row) for row in range(helping.list.count())]
    first = [helping.list.visualItemRect(row) for row in rows]
    helping.list.doItemsLayout()
    assert first == [helping.list.visualItemRect(row) for row in rows]


@pytest.mark.parametrize("works", [True, False])
def test_a_report_is_made_in_a_process(
    helping: HelpWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    """The process is a stand-in: the real one measures for minutes."""
    script = (
        "import sys; open(sys.argv[-1], 'w').write(' '.join(sys.argv[1:-1]))" if works else "exit('No room.')"
    )
    monkeypatch.setattr(help, "child_command", lambda *words: [sys.executable, "-c", script, *words])
    file = tmp_path / "report.md"
    with qtbot.waitSignal(helping.process.finished, timeout=60_000):
        helping.measure(file)
        assert not helping.report.isEnabled()
        for words in ("zebra", ""):
            helping.search.setText(words)
        assert helping.titles.says == MEASURING
    assert helping.report.isEnabled()
    assert helping.titles.says == (MEASURED if works else f"{NOT_MEASURED} No room.")
    assert not works or file.read_text() == "doctor --quiet --report"


def test_a_report_ends_with_its_children_when_the_window_goes(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    child = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(99)"
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[-1]])"
    monkeypatch.setattr(help, "child_command", lambda *words: [sys.executable, "-c", script, child, *words])
    helping = HelpWindow(PAGES)
    helping.measure(pid)
    qtbot.waitUntil(lambda: pid.exists() and bool(pid.read_text()), timeout=60_000)
    delete(helping)
    qtbot.waitUntil(lambda: not command_line(int(pid.read_text())), timeout=60_000)

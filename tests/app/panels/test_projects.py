"""Projects in the sidebar: arranged, folded, renamed and deleted by mouse and keyboard, and chats moved."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QMimeData, QModelIndex, QPersistentModelIndex, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QDragEnterEvent, QDragMoveEvent, QDropEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from app.panels import strings
from app.panels.chat_delegate import CHAT_MIME, ROW, ChatRows, dots_rect, new_chat_rect
from app.panels.chat_row import ChatRow, ProjectRow, arranged
from app.panels.sidebar import Sidebar
from app.theme.theme import color
from tests.app.controls.windows import activate

NOW = datetime(2026, 11, 18, 9, 30)
HARBOUR, TIDES = ProjectRow("p1", "Harbour", 2), ProjectRow("p2", "Tides")
CHATS = (
    ChatRow("c0", "Outside", NOW),
    ChatRow("c1", "Fog", NOW - timedelta(hours=1), project="p1"),
    ChatRow("c2", "Ferries", NOW - timedelta(days=2), pinned=True, project="p1"),
    ChatRow("c3", "Old", NOW - timedelta(days=90)),
)


@pytest.fixture
def sidebar(qtbot: QtBot) -> Sidebar:
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    sidebar.resize(240, 700)
    sidebar.set_projects((HARBOUR, TIDES))
    sidebar.set_chats(CHATS, "c0")
    activate(sidebar, qtbot)
    return sidebar


def listed(sidebar: Sidebar) -> list[str]:
    model = sidebar.list.model()
    return [str(model.index(place, 0).data()) for place in range(model.rowCount())]


def index_of(sidebar: Sidebar, text: str) -> QModelIndex:
    return sidebar.list.model().index(listed(sidebar).index(text), 0)


def heard(sidebar: Sidebar) -> list[tuple[object, ...]]:
    """What the list asks for, with the name of the signal."""
    found: list[tuple[object, ...]] = []
    names = ("project_folded", "project_renamed", "project_delete_requested", "new_chat_requested")
    for name in (*names, "move_requested", "delete_requested", "chat_selected"):
        getattr(sidebar.list, name).connect(lambda *given, name=name: found.append((name, *given)))
    return found


def test_projects_are_above_the_chats_outside_and_fold(sidebar: Sidebar) -> None:
    harbour = ["Projects", "Harbour", "Ferries", "Fog", "Tides"]
    ages = [each for each in listed(sidebar) if each not in (*harbour, "Outside", "Old")]
    assert listed(sidebar) == [*harbour, ages[0], "Outside", ages[-1], "Old"] or len(ages) == 1
    sidebar.set_projects((replace(HARBOUR, folded=True), TIDES))
    sidebar.set_chats(CHATS, "c0")
    assert listed(sidebar)[:3] == ["Projects", "Harbour", "Tides"]
    assert sidebar.list.selected == "c0"
    spoken = index_of(sidebar, "Harbour").data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Harbour, project, 2 chats, collapsed"
    sidebar.set_results([CHATS[1]], "c0")
    assert listed(sidebar) == ["1 chat found", "Fog"]
    sidebar.set_projects(())
    sidebar.set_chats((), "")
    assert listed(sidebar) == []
    assert QAccessible.queryAccessibleInterface(sidebar.list).childCount() == 0


def test_keys_on_a_project_leave_the_open_chat_alone(sidebar: Sidebar, qtbot: QtBot) -> None:
    view, found = sidebar.list, heard(sidebar)
    view.setFocus()
    keys = Qt.Key
    for key in (keys.Key_Home, keys.Key_Return, keys.Key_Left, keys.Key_Right, keys.Key_Delete):
        qtbot.keyClick(view, key)
    fold = ("project_folded", "p1", True)
    assert found == [fold, fold, ("project_delete_requested", "p1")]
    assert view.selected == "c0"
    # A new list, as after folding, keeps the focus there.
    sidebar.set_projects((replace(HARBOUR, folded=True), TIDES))
    sidebar.set_chats(CHATS, "c0")
    assert view.currentIndex().data(ROW).id == "p1"
    found.clear()
    qtbot.keyClick(view, keys.Key_Space)
    qtbot.keyClick(view, keys.Key_F2)
    editor = view.findChild(QLineEdit)
    assert editor.accessibleName() == strings.PROJECT_NAME
    editor.setText("Port")
    qtbot.keyClick(editor, keys.Key_Return)
    qtbot.waitUntil(lambda: len(found) > 1)
    assert found == [("project_folded", "p1", False), ("project_renamed", "p1", "Port")]
    found.clear()
    sidebar.set_projects((HARBOUR, TIDES))
    sidebar.set_chats(CHATS, "c0")
    qtbot.keyClick(view, keys.Key_Down)
    assert found == [("chat_selected", "c2")]
    qtbot.keyClick(view, keys.Key_Left)
    assert view.currentIndex().data(ROW).id == "p1"
    assert view.selected == "c2"


def test_a_project_is_folded_and_its_menu_and_new_chat_are_clicked(sidebar: Sidebar, qtbot: QtBot) -> None:
    view, found, menus = sidebar.list, heard(sidebar), []
    view.menu_requested.connect(lambda row_id, where: menus.append(row_id))
    row = view.visualRect(index_of(sidebar, "Harbour"))
    for place in (row.center(), new_chat_rect(row).center(), dots_rect(row).center()):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert found == [("project_folded", "p1", True), ("new_chat_requested", "p1")]
    assert menus == ["p1"]
    assert view.selected == "c0"
    texts = [action.text() for action in sidebar.menu_for("p1").actions() if action.text()]
    assert texts == [
        strings.NEW_CHAT_IN_PROJECT,
        strings.RENAME,
        strings.PROJECT_SETTINGS,
        strings.DELETE_PROJECT,
    ]


def test_a_chat_moves_by_its_menu(sidebar: Sidebar) -> None:
    found = heard(sidebar)
    menu = sidebar.move_menu("c1", "p1", sidebar)
    actions = {action.text(): action for action in menu.actions() if action.text()}
    assert list(actions) == ["Harbour", "Tides", strings.NO_PROJECT, strings.NEW_PROJECT]
    assert [each.isChecked() for each in actions.values()] == [True, False, False, False]
    asked: list[str] = []
    sidebar.new_project_requested.connect(asked.append)
    for name in ("Tides", strings.NO_PROJECT, strings.NEW_PROJECT):
        actions[name].trigger()
    assert found == [("move_requested", "c1", "p2"), ("move_requested", "c1", "")]
    assert asked == ["c1"]


@pytest.mark.parametrize(
    ("chat", "target", "moved"),
    [
        ("c0", "Tides", ("c0", "p2")),
        ("c0", "Fog", ("c0", "p1")),
        ("c1", "Outside", ("c1", "")),
        ("c1", "Ferries", None),
        ("c9", "Tides", None),
    ],
)
def test_a_chat_is_dropped(sidebar: Sidebar, chat: str, target: str, moved: tuple[str, str] | None) -> None:
    view, found, data = sidebar.list, heard(sidebar), QMimeData()
    data.setData(CHAT_MIME, chat.encode())
    place = view.visualRect(index_of(sidebar, target)).center()
    given = Qt.DropAction.MoveAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    for event in (QDragEnterEvent(place, *given), QDragMoveEvent(place, *given)):
        QApplication.sendEvent(view.viewport(), event)
        assert event.isAccepted() == (chat != "c9")
    assert is_framed(sidebar) == (moved is not None), "its new place is framed"
    drop = QDropEvent(QPointF(place), *given)
    QApplication.sendEvent(view.viewport(), drop)
    assert found == ([("move_requested", *moved)] if moved else [])
    assert not is_framed(sidebar)


def is_framed(sidebar: Sidebar) -> bool:
    """Whether a part of the list has a frame, by the colour at its left."""
    image, accent = sidebar.list.grab().toImage(), color("accent").rgb()
    return any(image.pixel(9, y) == accent for y in range(image.height()))


def test_a_search_result_is_not_dropped_on_another(sidebar: Sidebar) -> None:
    sidebar.set_results((CHATS[0], CHATS[1]), "c0")
    view, found, data = sidebar.list, heard(sidebar), QMimeData()
    data.setData(CHAT_MIME, b"c0")
    place = view.visualRect(index_of(sidebar, "Fog")).center()
    given = Qt.DropAction.MoveAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, *given)
    drop = QDropEvent(QPointF(place), *given)
    QApplication.sendEvent(view.viewport(), enter)
    QApplication.sendEvent(view.viewport(), drop)
    assert (enter.isAccepted(), found) == (False, [])


def test_a_folded_project_shows_that_a_chat_in_it_is_being_answered(sidebar: Sidebar) -> None:
    for folded in (False, True):
        sidebar.set_projects((replace(HARBOUR, folded=folded), TIDES))
        sidebar.set_chats(CHATS, "c0")
        before = sidebar.grab().toImage()
        sidebar.list.set_busy("c1", "p1")
        spoken = index_of(sidebar, "Harbour").data(Qt.ItemDataRole.AccessibleTextRole)
        assert (strings.BUSY in spoken) == folded
        assert sidebar.grab().toImage() != before
        sidebar.list.set_busy("")
        assert sidebar.grab().toImage() == before


def test_files_are_not_dropped_on_the_list(sidebar: Sidebar) -> None:
    data = QMimeData()
    data.setText("text")
    given = Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(9, 9), *given)
    QApplication.sendEvent(sidebar.list.viewport(), enter)
    assert not enter.isAccepted()


def test_a_chat_is_dragged_with_the_mouse(sidebar: Sidebar, monkeypatch: pytest.MonkeyPatch) -> None:
    """Qt starts the drag; the rest of it is up to the window system."""
    started: list[str] = []
    monkeypatch.setattr(
        "app.panels.chat_list.QDrag.exec",
        lambda drag, action: started.append(bytes(drag.mimeData().data(CHAT_MIME).data()).decode()),
    )
    view = sidebar.list
    for text in ("Fog", "Harbour"):
        start = view.visualRect(index_of(sidebar, text)).center()
        QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
        for step in (20, 40):
            place = QPointF(start + QPoint(0, step))
            moved = QMouseEvent(
                QEvent.Type.MouseMove,
                place,
                QPointF(view.viewport().mapToGlobal(place)),
                Qt.MouseButton.NoButton,
                Qt.MouseButton.LeftButton,
                Qt.KeyboardModifier.NoModifier,
            )
            QApplication.sendEvent(view.viewport(), moved)
        QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    assert started == ["c1"]


chats = st.lists(
    st.builds(
        ChatRow,
        st.sampled_from("abcdefgh"),
        st.sampled_from(["One", "Two"]),
        st.integers(0, 40).map(lambda days: NOW - timedelta(days=days)),
        st.booleans(),
        project=st.sampled_from(["", "p1", "p2", "gone"]),
    ),
    max_size=8,
    unique_by=lambda chat: chat.id,
)
projects = st.lists(
    st.builds(ProjectRow, st.sampled_from(["p1", "p2"]), st.just("P"), st.just(0), st.booleans()),
    max_size=2,
    unique_by=lambda project: project.id,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(chats, projects), min_size=2, max_size=4))
def test_changed_rows_replace_the_old_ones_and_the_others_stay(
    qapp: QApplication, lists: list[tuple[list[ChatRow], list[ProjectRow]]]
) -> None:
    model = ChatRows()
    for shown_chats, shown_projects in lists:
        kept = {
            model.index(place).data(ROW).id: QPersistentModelIndex(model.index(place))
            for place in range(model.rowCount())
            if model.index(place).data(ROW)
        }
        model.show_chats(shown_chats, shown_projects, NOW)
        wanted = arranged(shown_chats, shown_projects, NOW)
        rows = [
            model.index(place).data(ROW) or model.index(place).data() for place in range(model.rowCount())
        ]
        assert rows == wanted
        for row_id, index in kept.items():
            assert not index.isValid() or index.data(ROW).id == row_id
        assert all(model.index_of(row.id).data(ROW) == row for row in wanted if not isinstance(row, str))

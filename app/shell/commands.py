"""Commands: the table of all actions in menus and shortcuts, and their implementations.

`MENUS` declares each command once: identifier, title, action, keys, when it is enabled. Menus, keyboard
shortcuts and the help's page of shortcuts are made from it (`app/shell/menu_bar.py`).

Keys are written as Qt does: `Ctrl` is ⌘ on a Mac and Ctrl elsewhere, `Meta` is a Mac's ⌃.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QWidget

from app.chat.intents import Branch
from app.controllers.strings import NO_ANSWER_TEXT
from app.controllers.views import Views
from app.controls.keys import held
from app.features.help import SHORTCUTS_PAGE, HelpWindow
from app.panels.strings import TOKEN_COLORS_OPTIONS
from app.richtext.find_bar import Finder
from app.session.chats.conversation import documents
from app.session.turn.link_state import Link
from app.shell.columns import Arrangement, WindowColumns
from app.shell.controller import WindowController
from app.shell.windows import SideWindows

_STATE = Qt.WindowState


class MenuFacts(Struct, frozen=True):
    """State of the window that decides which commands are enabled.

    `busy`: an answer is being generated; `busy_here`: in the open chat. `asked`: the open chat has a
    question; `project`: it is in a project; `document`: it has a document. `deleted`: a chat or project can
    be restored. `unended`: the last answer can be continued. `racing`: the race's page hides the chat.
    `checked` are the identifiers of the commands whose state is on.
    """

    busy: bool = False
    busy_here: bool = False
    asked: bool = False
    deleted: bool = False
    document: bool = False
    project: bool = False
    unended: bool = False
    racing: bool = False
    checked: frozenset[str] = frozenset()


def is_typing(event: QKeyEvent) -> bool:
    """Whether `event` types a visible character. Space is excluded: it presses buttons and scrolls."""
    modifiers = held(event) & ~Qt.KeyboardModifier.ShiftModifier
    # On some systems AltGr is reported as Ctrl+Alt, together with the character.
    alt_gr = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    typing = [Qt.KeyboardModifier.NoModifier, alt_gr]
    if sys.platform == "darwin":  # Option writes @, [ or € there
        typing.append(Qt.KeyboardModifier.AltModifier)
    text = event.text()
    return bool(text.strip()) and text.isprintable() and modifiers in typing


class Commands(QObject):
    """The actions of the commands. Reaches the window through its controller, views and columns."""

    facts_changed = Signal()  # `facts()` may differ

    def __init__(
        self,
        controller: WindowController,
        views: Views,
        columns: WindowColumns,
        windows: SideWindows,
        zoom: Callable[[int], object],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self.controller = controller
        self.views = views
        self.columns = columns
        self.windows = windows
        self.zoom = zoom
        self.window = window
        self._phase = controller.link.phase
        for signal in (
            controller.chat.changed,
            controller.answer_finished,
            columns.arranged,
            controller.racing.shown_changed,
        ):
            signal.connect(self.facts_changed)
        controller.link_changed.connect(self._follow)
        views.side.tab_changed.connect(self.facts_changed)
        views.header.token_colors.value_changed.connect(self.facts_changed)
        controller.chat.document_requested.connect(self.show_document)

    def facts(self) -> MenuFacts:
        controller, plan = self.controller, self.columns.arrangement
        on = {
            "sidebar": plan.sidebar_px > 0,
            "inspector": plan.inspector_px > 0,
            "document": self._document_is_shown(plan),
            "full_screen": self.window.isFullScreen(),
            "pin": controller.chats.open.pinned,
            f"colors_{self.views.header.token_colors.value}": True,
        }
        turns = controller.chats.open.turns
        return MenuFacts(
            busy=controller.link.busy,
            busy_here=controller.asking.readiness.answers_here,
            asked=bool(turns),
            deleted=controller.chat.listing.can_undo_delete,
            document=bool(documents(controller.chats.open)),
            project=bool(self.project_id),
            unended=bool(controller.asking.readiness.continuable),
            racing=controller.racing.open,
            checked=frozenset(action_id for action_id, is_on in on.items() if is_on),
        )

    def escape(self) -> None:
        """Close the topmost layer over the chat, or stop the chat's answer if there is none.

        Popups handle the key first, since they have the focus. The race page hides the chat, so Escape on it
        never stops the chat's answer.
        """
        controller, views, plan = self.controller, self.views, self.columns.arrangement
        finders = (views.document.finder, views.transcript.finder)
        found = next((each for each in finders if each.is_open and each.bar.isVisible()), None)
        if controller.racing.open:
            (controller.racing.halt if controller.racing.recording else controller.racing.close)()
        elif found is not None:
            found.close()
        elif views.transcript.edited is not None and views.transcript.edited.editor is not None:
            views.transcript.edited.editor.cancel()
        elif plan.sidebar_over or plan.inspector_over:
            self.columns.close_over()
        elif controller.asking.readiness.edited:
            controller.asking.cancel_edit()
        else:
            controller.asking.stop()

    def stop(self) -> None:
        """Stop the race that is recorded, or the open chat's answer, whatever is in front of it."""
        racing = self.controller.racing
        (racing.halt if racing.recording else self.controller.asking.stop)()

    def show_document(self) -> None:
        self.views.side.show_tab("document")
        self.columns.show_inspector(True)

    def toggle_full_screen(self) -> None:
        self.window.setWindowState(self.window.windowState() ^ _STATE.WindowFullScreen)

    def close_front(self) -> None:
        """Close what covers the chat or is in front of it; the chat window if nothing does."""
        if self.windows.close_active():
            return
        if self.controller.racing.open:
            self.controller.racing.close()
        else:
            self.window.close()

    # ---- inside

    def _follow(self, link: Link) -> None:
        """Each token changes the link, but rarely its phase."""
        if link.phase is not self._phase:
            self._phase = link.phase
            self.facts_changed.emit()

    def copy_with_sources(self) -> None:
        """Copy the last answer with footnotes."""
        turn = self.controller.chats.open.turns[-1]
        if turn.answer.text:
            self.views.transcript.copy_with_sources(turn.id)

    def copy_answer(self) -> None:
        """Copy the last answer."""
        turn = self.controller.chats.open.turns[-1]
        if turn.answer.text:
            self.views.transcript.copy_answer(turn.id)
        else:
            self.views.notice_bar.show_notice(NO_ANSWER_TEXT)

    def search(self) -> None:
        self.columns.show_sidebar(True)
        self.views.sidebar.focus_search()

    def rename(self) -> None:
        self.columns.show_sidebar(True)
        self.views.sidebar.search.clear()
        self.views.sidebar.list.rename(self.controller.chats.open.id)

    def pin(self) -> None:
        chat = self.controller.chats.open
        self.controller.chat.listing.pin(chat.id, not chat.pinned)

    @property
    def project_id(self) -> str:
        """The project of the open chat; empty for none."""
        chats = self.controller.chats
        project = chats.projects.find(chats.open.project)
        return project.id if project else ""

    def move(self) -> None:
        """Open the menu of projects for the open chat."""
        self.columns.show_sidebar(True)
        self.views.sidebar.open_move_menu(self.controller.chats.open.id)

    def _document_is_shown(self, plan: Arrangement) -> bool:
        return plan.inspector_px > 0 and self.views.side.tab == "document"

    def toggle_document(self) -> None:
        """Show the document with the focus in it, or return to the settings and the message."""
        if self._document_is_shown(self.columns.arrangement):
            self.views.side.show_tab("settings")
            self.views.composer.edit.setFocus()
        else:
            self.show_document()
            self.views.document.view.setFocus()

    def jump(self, steps: int) -> None:
        self.show_document()
        self.views.document.jump(steps)

    def quote(self) -> None:
        """Quote the selection of the chat or, with the focus in the document, its current passage."""
        document, chat = self.views.document, self.views.transcript
        text = document.view.current_text if self._is_in_document() else ""
        self.views.composer.quote(text or chat.selected_text())

    def _is_in_document(self) -> bool:
        focused_widget, document = QApplication.focusWidget(), self.views.document
        return focused_widget is not None and document.isAncestorOf(focused_widget)

    def find(self) -> None:
        self._finder().open()

    def _finder(self) -> Finder:
        """The document's finder if the focus is in the document, else the chat's."""
        document = self.views.document
        in_document = self._is_in_document() and document.shown
        return document.finder if in_document else self.views.transcript.finder

    def find_step(self, forward: bool) -> None:
        finder = self._finder()
        if finder.is_open:
            finder.step(forward)
        else:
            finder.open()

    def toggle_sidebar(self) -> None:
        self.columns.show_sidebar(self.columns.arrangement.sidebar_px == 0)

    def toggle_inspector(self) -> None:
        self.columns.show_inspector(self.columns.arrangement.inspector_px == 0)

    def export(self, kind: str) -> None:
        """Export the open chat as "pdf", "html", "markdown" or "json"."""
        self.controller.chat.transfer.export(self.controller.chats.open.id, kind)

    def show_help(self, page: str = "") -> None:
        """Show the help window, at `page` if it is given."""
        window = self.windows.show("help")
        assert isinstance(window, HelpWindow)
        if page:
            window.show_page(page)

    def last_turn(self) -> str:
        """Id of the last turn of the open chat, which has one."""
        return self.controller.chats.open.turns[-1].id


def _focused() -> QWidget | None:
    """The widget with the focus; of a number's field the text in it."""
    focused = QApplication.focusWidget()
    return focused.lineEdit() if isinstance(focused, QAbstractSpinBox) else focused


def _undo(commands: Commands) -> None:
    """Undoes the last change of the focused text.

    If a text without Undo has the focus, or the message field and nothing was typed there since, undoes the
    last edit or deletion in the chat.
    """
    focused, asking = _focused(), commands.controller.asking
    of_text = getattr(focused, "undo", None)
    if of_text is None or (focused is commands.views.composer.edit and asking.edits.changed_last):
        asking.edits.undo()
    else:
        of_text()


def _edit(*methods: str) -> Callable[[Commands], None]:
    """Calls the first of `methods` that the focused text has; Qt's texts and ours differ in names."""

    def act(commands: Commands) -> None:
        focused = _focused()
        for name in methods:
            method = getattr(focused, name, None)
            if callable(method):
                method()
                return

    return act


def _active(commands: Commands) -> QWidget:
    """The window in front; for a sheet, the window that it belongs to."""
    active = QApplication.activeWindow() or commands.window
    parent = active.parentWidget()
    return parent.window() if active.isModal() and parent is not None else active


def _minimize(commands: Commands) -> None:
    _active(commands).showMinimized()


def _zoom_window(commands: Commands) -> None:
    window = _active(commands)
    window.setWindowState(window.windowState() ^ _STATE.WindowMaximized)


def _bring_all_to_front(commands: Commands) -> None:
    active = _active(commands)
    for window in QApplication.topLevelWidgets():
        if window.isVisible() and window is not active:
            window.raise_()
    active.raise_()


def _color_by(value: str) -> Callable[[Commands], object]:
    return lambda c: c.views.header.token_colors.set_value(value)


def _show(name: str) -> Callable[[Commands], object]:
    return lambda c: c.windows.show(name)


Role = Literal["none", "text", "about", "preferences", "quit"]
Reach = Literal["window", "app"]
_MAC = sys.platform == "darwin"
# ⌃⌘S has no equivalent on other systems, where ⌘ is Ctrl.
SIDEBAR_KEYS = "Ctrl+Meta+S" if _MAC else "Ctrl+Alt+S"
# macOS itself uses ⌥⌘D, for the Dock.
_DOCUMENT_KEYS = ("Ctrl+Alt+O",) if _MAC else ("Ctrl+Alt+D",)
_HELP_KEYS = ("Ctrl+?",) if _MAC else ("F1",)


def _always(facts: MenuFacts) -> bool:
    return True


_asked = attrgetter("asked")


def _in_view(facts: MenuFacts) -> bool:
    """Whether the messages of the open chat are visible."""
    return facts.asked and not facts.racing


@dataclass(frozen=True)
class Command:
    """One row of the table.

    `title_on` replaces `title` while `MenuFacts.checked` has the command. `act` is None for commands that the
    host of the window provides (`Actions.provide`); they are hidden until then. `role` moves a command into
    the application menu on a Mac; "text" commands also act on the text of the system's own panels there.
    Commands of one `submenu` are in a menu of that title. A `checkable` command has a check mark while
    `MenuFacts.checked` has it. Commands of reach `app` have their keys in every window of Draftlight, others
    in the chat window.
    """

    id: str
    title: str
    act: Callable[[Commands], object] | None
    keys: tuple[str, ...] = ()
    when: Callable[[MenuFacts], bool] = _always
    role: Role = "none"
    reach: Reach = "window"
    title_on: str = ""
    submenu: str = ""
    checkable: bool = False


@dataclass(frozen=True)
class Menu:
    """One menu, in groups with a separator between them. `&` in its title precedes the letter for Alt."""

    title: str
    groups: tuple[tuple[Command, ...], ...]


_FILE = (
    (
        Command("new_chat", "New Chat", lambda c: c.controller.chat.start(), ("Ctrl+N",)),
        Command(
            "new_chat_in_project",
            "New Chat in Project",
            lambda c: c.views.sidebar.list.new_chat_requested.emit(c.project_id),
            ("Ctrl+Alt+N",),
            attrgetter("project"),
        ),
    ),
    (
        Command(
            "new_project",
            "New Project…",
            lambda c: c.views.sidebar.new_project_requested.emit(""),
            ("Ctrl+Shift+N",),
        ),
        Command(
            "project_settings",
            "Project Settings…",
            lambda c: c.views.sidebar.project_settings_requested.emit(c.project_id),
            when=attrgetter("project"),
        ),
    ),
    (
        Command("attach", "Attach File…", lambda c: c.views.composer.choose_files(), ("Ctrl+O",)),
        Command(
            "attach_folder", "Attach Folder…", lambda c: c.views.composer.choose_folder(), ("Ctrl+Shift+O",)
        ),
    ),
    (
        Command("import", "Import Chats…", lambda c: c.controller.chat.importing.choose()),
        Command("export_pdf", "Export as PDF…", lambda c: c.export("pdf"), when=_asked),
        Command("export_html", "Export as HTML…", lambda c: c.export("html"), when=_asked),
        Command("export_markdown", "Export as Markdown…", lambda c: c.export("markdown"), when=_asked),
        Command("export_json", "Export as JSON…", lambda c: c.export("json"), when=_asked),
    ),
    (
        Command("close", "Close Window", Commands.close_front, ("Ctrl+W",), reach="app"),
        Command("quit", "Quit Draftlight", lambda c: c.window.close(), ("Ctrl+Q",), role="quit", reach="app"),
    ),
)

_EDIT = (
    (Command("undo", "Undo", _undo, ("Ctrl+Z",)), Command("redo", "Redo", _edit("redo"), ("Ctrl+Shift+Z",))),
    (
        Command("cut", "Cut", _edit("cut"), ("Ctrl+X",), role="text"),
        Command("copy", "Copy", _edit("copy"), ("Ctrl+C",), role="text"),
        Command("paste", "Paste", _edit("paste"), ("Ctrl+V",), role="text"),
        Command(
            "paste_raw", "Paste as Plain Text", lambda c: c.views.composer.edit.paste_raw(), ("Ctrl+Shift+V",)
        ),
        Command("select_all", "Select All", _edit("selectAll", "select_all"), ("Ctrl+A",), role="text"),
        Command("quote", "Quote Selection", Commands.quote, ("Ctrl+Shift+B",), _in_view),
    ),
    (
        Command("search", "Search Chats", Commands.search, ("Ctrl+K",)),
        Command("find", "Find…", Commands.find, ("Ctrl+F",), _in_view),
        Command("find_next", "Find Next", lambda c: c.find_step(True), ("Ctrl+G",), _in_view),
        Command("find_previous", "Find Previous", lambda c: c.find_step(False), ("Ctrl+Shift+G",), _in_view),
        Command(
            "next_passage",
            "Next Kept Passage",
            lambda c: c.jump(1),
            ("Ctrl+Alt+Down",),
            attrgetter("document"),
        ),
        Command(
            "previous_passage",
            "Previous Kept Passage",
            lambda c: c.jump(-1),
            ("Ctrl+Alt+Up",),
            attrgetter("document"),
        ),
    ),
    (Command("settings", "Settings…", _show("settings"), ("Ctrl+,",), role="preferences", reach="app"),),
)

_FULL_SCREEN = (
    Command(
        "full_screen",
        "Enter Full Screen",
        Commands.toggle_full_screen,
        ("F11",),
        title_on="Exit Full Screen",
    ),
)

_VIEW = (
    (
        Command("sidebar", "Show Sidebar", Commands.toggle_sidebar, (SIDEBAR_KEYS,), title_on="Hide Sidebar"),
        Command(
            "inspector",
            "Show Settings Panel",
            Commands.toggle_inspector,
            ("Ctrl+Alt+I",),
            title_on="Hide Settings Panel",
        ),
    ),
    (
        Command(
            "document", "Show Document", Commands.toggle_document, _DOCUMENT_KEYS, title_on="Hide Document"
        ),
    ),
    (
        *(
            Command(
                f"colors_{value}",
                title,
                _color_by(value),
                submenu="Token Colors",
                checkable=True,
            )
            for value, title in TOKEN_COLORS_OPTIONS
        ),
        Command(
            "next_colors",
            "Next Token Colors",
            lambda c: c.views.header.token_colors.cycle(),
            ("Ctrl+T",),
            submenu="Token Colors",
        ),
    ),
    (
        # The plus sign is a shifted equals sign on many keyboards.
        Command("zoom_in", "Zoom In", lambda c: c.zoom(1), ("Ctrl++", "Ctrl+="), reach="app"),
        Command("zoom_out", "Zoom Out", lambda c: c.zoom(-1), ("Ctrl+-",), reach="app"),
        Command("zoom_reset", "Actual Size", lambda c: c.zoom(0), ("Ctrl+0",), reach="app"),
    ),
    # macOS adds its own item to a menu named View.
    *(() if _MAC else (_FULL_SCREEN,)),
)

_CHAT = (
    (
        Command("stop", "Stop Generating", Commands.stop, ("Esc", "Ctrl+."), attrgetter("busy")),
        Command(
            "regenerate",
            "Regenerate",
            lambda c: c.controller.asking.regenerate(),
            ("Ctrl+R",),
            _in_view,
        ),
        # Its key is Up in an empty composer, handled there.
        Command(
            "edit_last",
            "Edit Last Message",
            lambda c: c.controller.asking.edit(),
            when=lambda facts: _in_view(facts) and not facts.busy_here,
        ),
        Command(
            "edit_answer",
            "Edit Answer",
            lambda c: c.controller.asking.edits.edit_answer(),
            ("Ctrl+Shift+E",),
            _in_view,
        ),
        Command(
            "continue",
            "Continue",
            lambda c: c.controller.asking.continue_answer(),
            when=lambda facts: facts.unended and not facts.racing,
        ),
    ),
    (
        Command("copy_answer", "Copy Answer", Commands.copy_answer, ("Ctrl+Shift+C",), _in_view),
        Command(
            "copy_with_sources", "Copy with Sources", Commands.copy_with_sources, (), attrgetter("document")
        ),
        Command(
            "branch",
            "Branch into New Chat",
            lambda c: c.views.transcript.intent.emit(Branch(c.last_turn())),
            when=_in_view,
        ),
        # Applies to the focused message, or the last one.
        Command(
            "delete_message",
            "Delete Question and Answer",
            lambda c: c.controller.asking.edits.delete_message(c.views.transcript.focused_turn),
            ("Ctrl+Shift+Backspace",),
            lambda facts: facts.asked and not facts.busy_here,
        ),
    ),
    (
        Command("rename", "Rename Chat", Commands.rename, when=_asked),
        Command("pin", "Pin Chat", Commands.pin, when=_asked, title_on="Unpin Chat"),
        Command("move", "Move to Project…", Commands.move, when=_asked),
        Command(
            "delete",
            "Delete Chat",
            lambda c: c.controller.chat.listing.delete(c.controller.chats.open.id),
            when=_asked,
        ),
        Command(
            "undo_delete",
            "Undo Delete",
            lambda c: c.controller.chat.listing.undo(),
            when=attrgetter("deleted"),
        ),
    ),
    (
        Command("race", "Race", lambda c: c.controller.racing.toggle(), ("Ctrl+Shift+R",), reach="app"),
        Command("restart", "Restart Engine", lambda c: c.controller.restart()),
    ),
)

_WINDOW = (
    (
        Command("minimize", "Minimize", _minimize, ("Ctrl+M",), reach="app"),
        Command("zoom_window", "Zoom", _zoom_window, reach="app"),
    ),
    (
        Command("deleted", "Recently Deleted…", _show("deleted")),
        Command("library", "Library", _show("library"), ("Ctrl+Shift+D",), reach="app"),
    ),
    (
        Command("models", "Models", _show("models"), ("Ctrl+Shift+M",), reach="app"),
        Command("tools", "Tools", _show("tools"), reach="app"),
        Command("server", "Local Server", _show("server"), ("Ctrl+Shift+S",), reach="app"),
    ),
    (
        Command("tables", "Tables", _show("tables"), ("Ctrl+Shift+T",), reach="app"),
        Command("lab", "Lab", _show("lab"), ("Ctrl+Shift+L",), reach="app"),
    ),
    (Command("front", "Bring All to Front", _bring_all_to_front, reach="app"),),
)

_HELP = (
    (
        Command("help", "Draftlight Help", lambda c: c.show_help(), _HELP_KEYS, reach="app"),
        Command(
            "shortcuts", "Keyboard Shortcuts", lambda c: c.show_help(SHORTCUTS_PAGE), ("Ctrl+/",), reach="app"
        ),
    ),
    (Command("about", "About Draftlight", None, role="about", reach="app"),),
)


MENUS = (
    Menu("&File", _FILE),
    Menu("&Edit", _EDIT),
    Menu("&View", _VIEW),
    Menu("&Chat", _CHAT),
    Menu("&Window", _WINDOW),
    Menu("&Help", _HELP),
)


def all_commands() -> tuple[Command, ...]:
    """The commands of all menus, in their order."""
    return tuple(command for menu in MENUS for group in menu.groups for command in group)

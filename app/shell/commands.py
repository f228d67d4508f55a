"""Commands: what each action does in the chat window, and what is so in it that decides which can be used."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.find import Finder
from app.chat.first_page import handbook
from app.chat.intents import Branch, CompareVersions
from app.controllers.views import Views
from app.controllers.window import WindowController
from app.panels.document.finder import DocumentFinder
from app.session.chats.reading import documents
from app.session.turn.link_state import Link, Phase
from app.shell.columns import Arrangement, WindowColumns
from app.shell.menus import focused, strings
from app.shell.menus.facts import MenuFacts


def is_typing(event: QKeyEvent) -> bool:
    """Whether `event` writes a character. Not a space, which presses buttons and pages through texts."""
    held = event.modifiers() & ~(Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier)
    # AltGr arrives as Ctrl+Alt on some systems, with the character that it gives.
    alt_gr = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    text = event.text()
    return bool(text.strip()) and text.isprintable() and held in (Qt.KeyboardModifier.NoModifier, alt_gr)


class Commands(QObject):
    """Reaches everything through the controller, the views and the columns of the one window."""

    facts_changed = Signal()  # `facts()` may be others

    def __init__(
        self, controller: WindowController, views: Views, columns: WindowColumns, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._controller = controller
        self._views = views
        self._columns = columns
        self._phase = controller.link.phase
        for told in (controller.chat.changed, controller.answer_finished, columns.arranged):
            told.connect(self.facts_changed)
        controller.link_changed.connect(self._follow)
        views.side.tab_changed.connect(self.facts_changed)
        views.header.tint.value_changed.connect(self.facts_changed)
        views.strip.pinned_changed.connect(self.facts_changed)
        controller.chat.document_requested.connect(self.show_document)

    def slots(self) -> dict[str, Callable[[], object]]:
        """What is bound to the declared actions."""
        controller, views = self._controller, self._views
        edit = views.composer.edit
        return {
            "new_chat": controller.chat.start,
            "attach": views.composer.choose_files,
            "attach_folder": views.composer.choose_folder,
            "rename": self._rename,
            "pin": self._pin,
            "archive": self._archive,
            "delete": lambda: controller.chat.listing.delete(controller.chats.open.id),
            "undo_delete": controller.chat.listing.undo,
            "export_markdown": lambda: controller.chat.transfer.export(controller.chats.open.id, "markdown"),
            "export_json": lambda: controller.chat.transfer.export(controller.chats.open.id, "json"),
            "import": controller.chat.transfer.import_files,
            **focused.slots(),
            "paste_raw": edit.paste_raw,
            "quote": self._quote,
            "search": self._search,
            "find": self._find,
            "find_next": lambda: self._find_step(True),
            "find_previous": lambda: self._find_step(False),
            "sidebar": lambda: self._columns.show_sidebar(self._columns.arrangement.sidebar_px == 0),
            "inspector": lambda: self._columns.show_inspector(self._columns.arrangement.inspector_px == 0),
            "document": self._toggle_document,
            "next_passage": lambda: self._jump(1),
            "previous_passage": lambda: self._jump(-1),
            "tint": views.header.cycle_tint,
            "tint_always": lambda: views.header.tint.set_value("always"),
            "tint_hover": lambda: views.header.tint.set_value("hover"),
            "tint_never": lambda: views.header.tint.set_value("never"),
            "gauges": views.header.gauges_button.click,
            "help": lambda: views.composer.show_text(strings.HELP_TEXT, "", handbook().text),
            "race": controller.racing.toggle,
            "stop": self.escape,
            "regenerate": controller.asking.regenerate,
            "edit_last": controller.asking.edit,
            "continue": lambda: controller.asking.continue_answer(controller.asking.continuable),
            "copy_answer": self._copy_answer,
            "branch": lambda: views.transcript.intent.emit(Branch(self._last_turn_id)),
            "compare": lambda: views.transcript.intent.emit(CompareVersions(self._last_turn_id)),
            "restart": controller.restart,
        }

    @property
    def _last_turn_id(self) -> str:
        return self._controller.chats.open.turns[-1].id

    def facts(self) -> MenuFacts:
        """As they stand."""
        controller, plan = self._controller, self._columns.arrangement
        on = {
            "sidebar": plan.sidebar_px > 0,
            "inspector": plan.inspector_px > 0,
            "document": self._document_is_shown(plan),
            f"tint_{self._views.header.tint.value}": True,
            "gauges": self._views.strip.is_pinned,
            "full_screen": self._views.header.window().isFullScreen(),
        }
        turns = controller.chats.open.turns
        return MenuFacts(
            ready=controller.link.phase is Phase.READY,
            busy=controller.link.busy,
            busy_here=controller.asking.answers_here,
            asked=bool(controller.chats.open.turns),
            deleted=bool(controller.chats.deleted()),
            document=bool(documents(controller.chats.open)),
            unended=bool(controller.asking.continuable),
            versions=bool(turns) and len(turns[-1].versions) > 1,
            checked=frozenset(action_id for action_id, is_on in on.items() if is_on),
        )

    def escape(self) -> None:
        """Close what lies over the chat, one thing at a time; where nothing does, stop the answer.

        Popups come before it: they have the keyboard. The race covers the chat, so that nothing of the chat
        is stopped from there.
        """
        controller, views, plan = self._controller, self._views, self._columns.arrangement
        finders = (views.document.finder, views.transcript.finder)
        found = next((each for each in finders if each.is_open and each.bar.isVisible()), None)
        if controller.racing.open:
            (controller.racing.halt if controller.racing.recording else controller.racing.close)()
        elif found is not None:
            found.close()
        elif plan.sidebar_over or plan.inspector_over:
            self._columns.close_over()
        elif controller.asking.is_editing:
            controller.asking.cancel_edit()
        else:
            controller.asking.stop()

    def show_document(self) -> None:
        """Bring the Document tab to the screen."""
        self._views.side.show_tab("document")
        self._columns.show_inspector(True)

    # ---- inside

    def _follow(self, link: Link) -> None:
        """Each token makes a new link, and hardly any of them another phase."""
        if link.phase is not self._phase:
            self._phase = link.phase
            self.facts_changed.emit()

    def _copy_answer(self) -> None:
        """Copy the source of the last answer."""
        turn = self._controller.chats.open.turns[-1]
        shown = self._views.transcript.answer(turn.id)
        if shown is not None:
            shown.copy()
        else:
            QGuiApplication.clipboard().setText(turn.answer.text)

    def _search(self) -> None:
        self._columns.show_sidebar(True)
        self._views.sidebar.focus_search()

    def _rename(self) -> None:
        self._columns.show_sidebar(True)
        self._views.sidebar.search.clear()
        self._views.sidebar.list.rename(self._controller.chats.open.id)

    def _pin(self) -> None:
        chat = self._controller.chats.open
        self._controller.chat.listing.pin(chat.id, not chat.pinned)

    def _archive(self) -> None:
        chat = self._controller.chats.open
        self._controller.chat.listing.archive(chat.id, chat.archived is None)

    def _document_is_shown(self, plan: Arrangement) -> bool:
        return plan.inspector_px > 0 and self._views.side.tab == "document"

    def _toggle_document(self) -> None:
        """There and back: to the document's text, and from it to the settings and the message."""
        if self._document_is_shown(self._columns.arrangement):
            self._views.side.show_tab("settings")
            self._views.composer.edit.setFocus()
        else:
            self.show_document()
            self._views.document.view.setFocus()

    def _jump(self, steps: int) -> None:
        self.show_document()
        self._views.document.jump(steps)

    def _quote(self) -> None:
        """What is selected in the chat or, with the keyboard in the document, its marked passage."""
        document, chat = self._views.document, self._views.transcript
        text = document.view.current_text if self._is_in_document() else ""
        self._views.composer.quote(text or chat.selected_text())

    def _is_in_document(self) -> bool:
        focused_widget, document = QApplication.focusWidget(), self._views.document
        return focused_widget is not None and document.isAncestorOf(focused_widget)

    def _find(self) -> None:
        self._finder().open()

    def _finder(self) -> Finder | DocumentFinder:
        """Of what the person is at: the document, if the keyboard is there, else the chat."""
        document = self._views.document
        in_document = self._is_in_document() and document.shown
        return document.finder if in_document else self._views.transcript.finder

    def _find_step(self, forward: bool) -> None:
        finder = self._finder()
        if finder.is_open:
            finder.step(forward)
        else:
            finder.open()

"""Projects: the sheet with a project's settings, and the commands for projects.

`ProjectsController` creates, changes and deletes projects, and starts chats in them. The chats of a project
are listed, moved and deleted by `ChatListController`. A new chat gets the project's settings, documents and
model; for an older chat of it, loading the model is offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QDialog, QLayout, QLineEdit, QWidget

from app.chat.composer_edit import local_files
from app.chat.file_reader import FileReader, FolderReading, Reading
from app.controllers.chat import ChatController
from app.controllers.views import Views
from app.controls.buttons import Button, on_click
from app.controls.choices import CheckBox, Popup
from app.controls.scroll_bar import ScrollPage
from app.controls.sheets import Question, form_row, open_files
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.library import LibraryController
from app.features.models.controller import ModelsController
from app.features.models.facts import names_of
from app.features.models.strings import NO_WORKER
from app.session.chats.chats import Chats
from app.session.chats.presets import known
from app.session.chats.projects import Project
from app.session.documents import KeptDocument, identity_of
from app.store.preferences import PreferencesFile
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height
from app.theme.zoom import px
from core.errors import RequestError
from core.events import Attachment

NEW_PROJECT = "New Project"
PROJECT_SETTINGS = "Project Settings"
NAME = "Name"
FOR_NEW_CHATS = "New chats in this project start with these settings. Other chats keep theirs."
SYSTEM_PROMPT = "System prompt"
SYSTEM_PROMPT_HINT = "Instructions for the model. If empty, those of the preset apply."
PRESET = "Preset"
USUAL_PRESET = "Default"
MODEL = "Model"
USUAL_MODEL = "The loaded model"
DOCUMENTS = "Documents"
DOCUMENTS_NOTE = "Checked documents of the library are attached to each new chat in the project."
NO_DOCUMENTS = "The library is empty. Added files are kept in it."
PROJECT_SETTINGS_ACTION = "Project Settings…"
ADD_FILES = "Add Files…"
ADD_FILES_TITLE = "Add Files to the Project"
CANCEL = "Cancel"
CREATE = "Create"
SAVE = "Save"
LOAD = "Load"
DELETE_TEXT = "The chats can be kept outside of the project, or moved to “Recently Deleted”."
KEEP_CHATS = "Keep Chats"
DELETE_CHATS = "Delete Chats"


def reading_text(name: str) -> str:
    return f"Reading {name}…"


def not_installed(model: str) -> str:
    return f"{model} (not installed)"


def replaced_text(name: str) -> str:
    return f"The new “{name}” takes the place of the one in this project, which stays in the library."


def missing_text(documents: int) -> str:
    start = "1 document of this project is" if documents == 1 else f"{documents:,} of its documents are"
    return f"{start} not in the library any more."


def delete_title(name: str, chats: int) -> str:
    count = "1 chat" if chats == 1 else f"{chats:,} chats"
    return f"Delete the project “{name}” with {count}?"


def uses_model(name: str, model: str) -> str:
    return f"The project “{name}” uses {model}"


def loads_next(model: str) -> str:
    return f"{model} will be loaded when the answer is complete"


def misses_model(name: str, model: str) -> str:
    return f"The project “{name}” uses {model}, which is not installed"


_WIDTH_PX, _MARGIN_PX, _LABEL_PX = 480, 20, 104
_INNER_PX = _WIDTH_PX - 2 * _MARGIN_PX
_DOCUMENTS_PX, _LEAST_DOCUMENTS_PX = 112, 48
_NAME_CHARACTERS = 80
_MOST_NOTES = 3


class ProjectSheet(QDialog):
    """Emits `saved` with the changed project and the added files, which are not in the library yet.

    `presets` are names; `list_models` returns pairs of reference and name. Deletes itself when closed.
    """

    saved = Signal(object, object)  # Project, tuple[Attachment, ...]

    def __init__(
        self,
        title: str,
        project: Project,
        presets: Sequence[str],
        list_models: Callable[[], Sequence[tuple[str, str]]],
        documents: Sequence[KeptDocument],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._project = project
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setAcceptDrops(True)
        self.name = QLineEdit(project.name)
        self.name.setMaxLength(_NAME_CHARACTERS)
        self.system_prompt = TextArea()
        self.system_prompt.setPlaceholderText(SYSTEM_PROMPT_HINT)
        self.system_prompt.set_value(project.system_prompt)
        self.preset = Popup([("", USUAL_PRESET), *((name, name) for name in presets)])
        self.model = Popup(())
        self._list_models = list_models
        self._models: Sequence[tuple[str, str]] | None = None
        self.refresh_models()
        if project.preset in presets:
            self.preset.set_value(project.preset)
        self.documents: dict[str | Attachment, CheckBox] = {}
        self._by_identity: dict[tuple[str, str], CheckBox] = {}
        self._notes: list[str] = []  # about added files
        self._failed = False
        self.add_button = Button(ADD_FILES, small=True, icon_name="plus")
        self.note = TextLabel("", 11, 15, wrap=True, width_px=_INNER_PX)
        self.cancel = Button(CANCEL)
        self.save = Button(SAVE if project.name else CREATE, "primary")
        self._reader = FileReader(self._show_reading, self._take_file, self)
        self._reader.takes_scans = True
        self._lay_out(title)
        for document in sorted(documents, key=lambda each: each.id not in project.documents):
            checked = document.id in project.documents
            self._add_document(document.id, document.identity, document.name, checked)
        if missing := len(set(project.documents) - {document.id for document in documents}):
            self._notes.append(missing_text(missing))
        self._show_notes()
        self._fit(parent.window())
        self.name.textChanged.connect(self._enable)
        on_click((self.add_button, self._choose_files), (self.cancel, self.reject), (self.save, self._save))
        self._enable()
        self.name.setFocus()

    def refresh_models(self) -> None:
        """List the models to choose from; the project's own stays a choice if it is not installed."""
        models = self._list_models()
        if models == self._models:
            return
        self._models = models
        wanted = self.model.value if self.model.count() else self._project.model
        options = [("", USUAL_MODEL), *models]
        if wanted and all(reference != wanted for reference, _ in models):
            options.append((wanted, not_installed(wanted)))
        self.model.show_options(options, wanted)

    def add_files(self, paths: Sequence[Path]) -> None:
        """Read files, and those of folders, as documents of the project.

        One with the name of a checked document replaces it.
        """
        self._notes.clear()
        self._failed = False
        for path in paths:
            (self._reader.read_folder if path.is_dir() else self._reader.read)(path)
        self._enable()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.add_files(local_files(event.mimeData()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.save.isEnabled():
                self._save()
        else:
            super().keyPressEvent(event)

    def done(self, result: int) -> None:
        self._reader.cancel_all()
        super().done(result)

    # ---- inside

    def _save(self) -> None:
        checked = [key for key, box in self.documents.items() if box.isChecked()]
        project = replace(
            self._project,
            name=" ".join(self.name.text().split()),
            system_prompt=self.system_prompt.value.strip(),
            preset=self.preset.value,
            model=self.model.value,
            documents=tuple(key for key in checked if isinstance(key, str)),
        )
        files = tuple(key for key in checked if isinstance(key, Attachment))
        self.accept()
        self.saved.emit(project, files)

    def _enable(self) -> None:
        self.save.setEnabled(bool(self.name.text().strip()) and not self._reader.busy)

    def _choose_files(self) -> None:
        open_files(self, ADD_FILES_TITLE, self.add_files)

    def _show_reading(self, reading: Reading) -> None:
        self._say(reading_text(reading.name))

    def _take_file(self, reading: Reading) -> None:
        result = reading.result
        if isinstance(result, RequestError):
            self._failed = True
            self._notes.append(f"{result.message} {result.hint}".strip())
        else:
            for added in reading.attachments:
                self._take_document(added)
            skipped = reading.skipped if isinstance(reading, FolderReading) else ()
            self._notes += [f"{each.name}: {each.reason}" for each in skipped]
        self._show_notes()
        self._enable()

    def _take_document(self, added: Attachment) -> None:
        identity = identity_of(added)
        if known := self._by_identity.get(identity):
            known.setChecked(True)
            self._documents.ensureWidgetVisible(known)
            return
        for box in self.documents.values():
            if box.isChecked() and box.whole == added.name:
                box.setChecked(False)
                self._notes.append(replaced_text(added.name))
        self._add_document(added, identity, added.name, True, first=True)

    def _show_notes(self) -> None:
        usual = DOCUMENTS_NOTE if self.documents else NO_DOCUMENTS
        self._say(" ".join(self._notes[:_MOST_NOTES]) or usual, "danger" if self._failed else "text2")

    def _say(self, text: str, color: str = "text2") -> None:
        self.note.set_color(color)
        self.note.setText(text)
        self.note.updateGeometry()

    def _add_document(
        self,
        key: str | Attachment,
        identity: tuple[str, str],
        name: str,
        checked: bool,
        *,
        first: bool = False,
    ) -> None:
        box = self.documents[key] = self._by_identity[identity] = CheckBox(name)
        box.setChecked(checked)
        self._list.insertWidget(0 if first else self._list.count() - 1, box)

    def _lay_out(self, title: str) -> None:
        page = QWidget()
        self._list = column_of(STRETCH, gap=2, parent=page)
        documents = self._documents = ScrollPage(page)
        set_fixed_height(documents, _DOCUMENTS_PX)
        column = column_of(
            TextLabel(title, 15, 20, "text", weight=600, width_px=_INNER_PX),
            form_row(_LABEL_PX, NAME, self.name),
            2,
            TextLabel(FOR_NEW_CHATS, 11, 15, wrap=True, width_px=_INNER_PX),
            form_row(_LABEL_PX, SYSTEM_PROMPT, self.system_prompt),
            form_row(_LABEL_PX, PRESET, self.preset),
            form_row(_LABEL_PX, MODEL, self.model),
            form_row(_LABEL_PX, DOCUMENTS, documents),
            row_of(self.add_button, STRETCH, margins=(_LABEL_PX + 10, 0, 0, 0)),
            self.note,
            6,
            row_of(STRETCH, self.cancel, self.save, gap=8),
            gap=8,
            margins=(_MARGIN_PX, 18, _MARGIN_PX, 16),
            parent=self,
        )
        column.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)

    def _fit(self, window: QWidget) -> None:
        """Shorten the list of documents where the sheet would be higher than its `window`."""
        over_px = self.sizeHint().height() - window.height()
        if over_px > 0:
            shorter = _DOCUMENTS_PX - math.ceil(100 * over_px / px(100))
            set_fixed_height(self._documents, max(_LEAST_DOCUMENTS_PX, shorter))


class ProjectsController(QObject):
    """Reaches the chat window through `views`; its sheets belong to that window."""

    def __init__(
        self,
        views: Views,
        chats: Chats,
        chat: ChatController,
        library: LibraryController,
        models: ModelsController,
        preferences: PreferencesFile,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._chat = chat
        self._library = library
        self._models = models
        self._preferences = preferences
        self._waiting: Callable[[], None] | None = None  # until the models are known
        self._requested = False
        self._offer = ""  # the last notice about a project's model
        models.changed.connect(self._on_models_changed)
        sidebar = views.sidebar
        sidebar.new_project_requested.connect(self.create)
        sidebar.project_settings_requested.connect(self.edit)
        sidebar.chat_selected.connect(self._offer_model)
        sidebar.list.new_chat_requested.connect(self.start_chat)
        sidebar.list.project_folded.connect(self._fold)
        sidebar.list.project_renamed.connect(self._rename)
        sidebar.list.project_delete_requested.connect(self.delete)

    def create(self, chat_id: str = "") -> None:
        """Let the person create a project; a chat is moved into it if its id is given."""

        def save(project: Project, files: Sequence[Attachment]) -> None:
            created = self._chats.projects.add(project.name)
            self._save(replace(project, id=created.id, created=created.created), files)
            if chat_id:
                self._chat.listing.move(chat_id, created.id)
            else:
                self.start_chat(created.id)

        self._open_sheet(NEW_PROJECT, Project("", "", self._chats.now()), save)

    def edit(self, project_id: str) -> None:
        project = self._chats.projects.find(project_id)
        if project:
            self._open_sheet(PROJECT_SETTINGS, project, self._save)

    def start_chat(self, project_id: str) -> None:
        """Open a new chat in a project, with its documents attached, and load its model."""
        project = self._chats.projects.find(project_id)
        if project is None:
            return
        self._chat.start(project_id)
        missing = self._library.attach_all(project.documents)
        if missing:
            self._views.notice_bar.show_notice(
                missing_text(missing),
                PROJECT_SETTINGS_ACTION,
                lambda: self.edit(project_id),
                kind="warning",
            )
        self._with_models(lambda: self._use_model(project, at_once=True))

    def delete(self, project_id: str) -> None:
        """Delete a project; if it has chats, ask first whether they are kept."""
        project = self._chats.projects.find(project_id)
        if project is None:
            return
        chats = self._chats.in_project(project_id)
        if not chats:
            self._delete(project, with_chats=False)
            return
        question = Question(
            delete_title(project.name, len(chats)),
            DELETE_TEXT,
            CANCEL,
            (("keep", KEEP_CHATS, "plain"), ("delete", DELETE_CHATS, "danger")),
            self._views.sidebar.window(),
        )
        question.chosen.connect(lambda value: self._delete(project, with_chats=value == "delete"))
        question.open()

    # ---- inside

    def _delete(self, project: Project, *, with_chats: bool) -> None:
        if not with_chats:
            self._detach(project, project.documents)  # from the chat that is outside from now on
        self._chat.listing.delete_project(project.id, with_chats=with_chats)

    def _detach(self, project: Project, document_ids: Iterable[str]) -> None:
        """Remove documents from the message of the project's unused chat."""
        library, ids = self._library.documents, set(document_ids)
        removed = {each.identity for each in (*library.listed(), *library.removed) if each.id in ids}

        def is_removed(attachment: Attachment) -> bool:
            return identity_of(attachment) in removed

        self._chats.remove_from_drafts(project.id, is_removed)
        opened, chips = self._chats.open, self._views.composer.chips
        if opened.project == project.id and not opened.turns:
            for chip in chips.chips:
                if is_removed(chip.attachment):
                    chips.remove(chip)

    def _open_sheet(
        self, title: str, project: Project, save: Callable[[Project, Sequence[Attachment]], None]
    ) -> None:
        window = self._views.sidebar.window()
        for dialog in window.findChildren(QDialog, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if dialog.isVisible():  # a window has one sheet at a time
                dialog.activateWindow()
                return
        presets = [preset.name for preset in known(self._preferences.now.presets)]
        documents = self._library.documents.listed()
        sheet = ProjectSheet(title, project, presets, self._model_names, documents, window)
        sheet.saved.connect(save)
        self._models.changed.connect(sheet.refresh_models)
        if not self._models.state.listed:
            self._models.refresh()
        sheet.open()

    def _save(self, project: Project, files: Sequence[Attachment]) -> None:
        added = [self._library.keep_quietly(file) for file in files]
        documents = tuple(dict.fromkeys((*added, *project.documents)))
        now = self._chats.projects.find(project.id) or project  # it may have been folded meanwhile
        self._chats.change_project(replace(project, documents=documents, folded=now.folded))
        # Its unused chat may be open.
        self._detach(project, set(now.documents).difference(documents))
        opened = self._chats.open
        if opened.project == project.id and not opened.turns:
            self._library.attach_all([each for each in documents if each not in now.documents])
        self._chat.settings.refresh()
        self._chat.listing.show_projects()

    def _fold(self, project_id: str, folded: bool) -> None:
        project = self._chats.projects.find(project_id)
        if project:
            self._chats.projects.change(replace(project, folded=folded))
            self._chat.listing.show()

    def _rename(self, project_id: str, name: str) -> None:
        self._chats.projects.rename(project_id, name)
        self._chat.listing.show_projects()

    def _model_names(self) -> list[tuple[str, str]]:
        return list(names_of(self._models.state.models).items())

    def _offer_model(self, chat_id: str) -> None:
        """Offer the model of the chat's project, in place of an offer for another chat."""
        if self._offer and self._views.notice_bar.text == self._offer:
            self._views.notice_bar.clear()
        self._offer = ""
        project = self._chats.projects.find(self._chats.summary(chat_id).project)
        if project and project.model:
            self._with_models(lambda: self._use_model(project, at_once=False))

    def _with_models(self, act: Callable[[], None]) -> None:
        """Call `act` once the models are known, unless another call replaces it before."""
        self._waiting, self._requested = act, False
        self._on_models_changed()

    def _on_models_changed(self) -> None:
        if self._waiting is None:
            return
        if self._models.state.listed:
            act, self._waiting = self._waiting, None
            act()
        elif self._models.alive and not self._requested:
            self._requested = True
            self._models.refresh()

    def _use_model(self, project: Project, *, at_once: bool) -> None:
        models, wanted = self._models, project.model
        loaded = models.state.loaded
        if self._chats.open.project != project.id:
            return  # another chat was opened before the models were known
        if not wanted or (loaded and loaded.reference == wanted) or models.state.loading == wanted:
            return
        names, notice = dict(self._model_names()), self._views.notice_bar
        if wanted not in names:
            self._offer = misses_model(project.name, wanted)
            notice.show_notice(self._offer, kind="warning")
        elif at_once and models.can_load:
            models.load(wanted)
        else:
            self._offer = uses_model(project.name, names[wanted])
            notice.show_notice(self._offer, LOAD, lambda: self._load(wanted, names[wanted]))

    def _load(self, model: str, name: str) -> None:
        self._views.notice_bar.clear()
        if not self._models.load_next(model):
            if self._models.alive:
                self._views.notice_bar.show_notice(loads_next(name))
            else:
                self._views.notice_bar.show_notice(NO_WORKER, kind="warning")

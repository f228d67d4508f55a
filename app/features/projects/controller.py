"""ProjectsController: creates, changes and deletes projects, and starts chats in them.

The chats of a project are listed, moved and deleted by `ChatListController`. A new chat gets the project's
settings, documents and model; for an older chat of it, loading the model is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QDialog

from app.controllers.chat.chat import ChatController
from app.controllers.views import Views
from app.controls.sheets import Question
from app.features.library.controller import LibraryController
from app.features.models.controller import ModelsController
from app.features.models.facts import names_of
from app.features.projects import strings
from app.features.projects.window import ProjectSheet
from app.session.chats.chats import Chats
from app.session.chats.presets import known
from app.session.chats.projects import Project
from app.store.preferences import PreferencesFile
from app.theme.theme import Theme
from core.events import Attachment


class ProjectsController(QObject):
    """Reaches the chat window through `views`; its sheets belong to that window."""

    def __init__(
        self,
        theme: Theme,
        views: Views,
        chats: Chats,
        chat: ChatController,
        library: LibraryController,
        models: ModelsController,
        preferences: PreferencesFile,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._views = views
        self._chats = chats
        self._chat = chat
        self._library = library
        self._models = models
        self._preferences = preferences
        self._waiting: Callable[[], None] | None = None  # until the models are known
        self._requested = False
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
                self._views.sidebar.list.focus_project(created.id)

        self._open_sheet(strings.NEW_PROJECT, Project("", "", self._chats.now()), save)

    def edit(self, project_id: str) -> None:
        """Let the person change the settings of a project."""
        project = self._chats.projects.find(project_id)
        if project:
            self._open_sheet(strings.PROJECT_SETTINGS, project, self._save)

    def start_chat(self, project_id: str) -> None:
        """Open a new chat in a project, with its documents attached, and load its model."""
        project = self._chats.projects.find(project_id)
        if project is None:
            return
        self._chat.start(project_id)
        self._library.attach_all(project.documents)
        self._with_models(lambda: self._use_model(project, at_once=True))

    def delete(self, project_id: str) -> None:
        """Delete a project after asking what becomes of its chats, if it has any."""
        project, listing = self._chats.projects.find(project_id), self._chat.listing
        if project is None:
            return
        chats = self._chats.in_project(project_id)
        if not chats:
            listing.delete_project(project_id, with_chats=False)
            return
        question = Question(
            self._theme,
            strings.delete_title(project.name, len(chats)),
            strings.DELETE_TEXT,
            strings.CANCEL,
            (("keep", strings.KEEP_CHATS, "plain"), ("delete", strings.DELETE_CHATS, "danger")),
            self._views.sidebar.window(),
        )
        question.chosen.connect(
            lambda value: listing.delete_project(project_id, with_chats=value == "delete")
        )
        question.open()

    # ---- inside

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
        sheet = ProjectSheet(self._theme, title, project, presets, self._model_names, documents, window)
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
        self._chat.settings.show()  # of its unused chat, which may be open
        self._chat.listing.show()

    def _fold(self, project_id: str, folded: bool) -> None:
        project = self._chats.projects.find(project_id)
        if project:
            self._chats.projects.change(replace(project, folded=folded))
            self._chat.listing.show()

    def _rename(self, project_id: str, name: str) -> None:
        self._chats.projects.rename(project_id, name)
        self._chat.listing.show()

    def _model_names(self) -> list[tuple[str, str]]:
        return list(names_of(self._models.state.models).items())

    def _offer_model(self, chat_id: str) -> None:
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
        """Load the project's model, or offer to."""
        models, wanted = self._models, project.model
        loaded = models.state.loaded
        if not wanted or (loaded and loaded.reference == wanted) or models.state.loading == wanted:
            return
        names = dict(self._model_names())
        if wanted not in names:
            self._views.notice_bar.show_notice(strings.misses_model(project.name, wanted))
        elif at_once and models.can_load:
            models.load(wanted)
        else:
            text = strings.uses_model(project.name, names[wanted])
            self._views.notice_bar.show_notice(text, strings.LOAD, lambda: models.load(wanted))

"""ModelsController: the state of the models on this machine, and the commands about them.

The worker does all the work; this sends commands and stores the results. A model is loaded with the same
intent as everywhere, so that the chat window shows it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu

from app.chat.first_page import Lead
from app.controllers.app import App
from app.controls.buttons import in_menu, on_click
from app.features.models import state as models
from app.features.models import strings
from app.features.models.facts import fit_facts, names_of
from app.features.models.state import ModelsState
from app.session.turn import effects as fx
from app.session.turn.intents import Load, Unload
from app.session.turn.link_state import Link
from core.errors import WorkerError
from core.events import (
    CancelDownload,
    DownloadModel,
    DownloadProgress,
    Finished,
    ImportModel,
    ListModels,
    LookUpModels,
    ModelEntry,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    PauseDownload,
    RemoveModel,
    Stats,
)
from core.events.models import CatalogueCommand, CatalogueEvent
from core.settings import assign, read
from core.worker.client import CommandError

DRAFT_KEY = "draft_model.model"
_LIST_S = 10.0


class ModelsController(QObject):
    """`state` is the current state of the models. Call `follow()` after each step of the state machine."""

    changed = Signal()  # the state, the draft model or the default changed
    imported = Signal(str)  # reference of a newly imported model
    wait_ended = Signal()  # `awaited` became empty

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._inspector, first_page = app.views.inspector, app.views.first_page
        self._preferences = app.preferences
        self._watched = False
        self._offered: ModelEntry | None = None  # the suggestion on the first page
        self._fetched = ""  # the download to load when it is complete
        self._awaited: ModelEntry | None = None  # the accepted suggestion, until it is loaded
        self._next = ""  # the model to load as soon as one can be loaded
        self.state = ModelsState()
        self.last_stats: tuple[str, Stats] | None = None
        on_click(
            (first_page.lead_button, lambda: self._answer_offer(True)),
            (first_page.other_button, self._decline),
        )

    @property
    def shown(self) -> ModelsState:
        """The state with the cache settings of the open chat."""
        return replace(self.state, kv=self._inspector.settings.kv)

    @property
    def can_load(self) -> bool:
        """Whether another model may be loaded now."""
        return self.alive and not self.state.busy and not self.state.loading

    @property
    def may_choose(self) -> bool:
        """Whether a person may choose another model now, also while one is loading, or no worker runs."""
        return not self.state.busy

    @property
    def alive(self) -> bool:
        """Whether there is a worker to send commands to."""
        return self._app.link.connected

    @property
    def awaited(self) -> str:
        """Name of the accepted suggestion while it is downloaded and loaded; questions wait for it."""
        return self._awaited.name if self._awaited else ""

    def loads_at_start(self, reference: str) -> bool:
        """Whether the model `reference` is loaded at every start."""
        return (self._preferences.now.model or "starter") == reference

    # ---- commands

    def watch(self) -> None:
        """Keep the state up to date from now on: a window shows it."""
        self._watched = True
        self.refresh()

    def refresh(self) -> None:
        if self.alive:
            self._app.worker.begin(self._list())

    async def _list(self) -> None:
        self._take(await self._app.worker.ask(ListModels(""), ModelList))

    async def installed(self) -> Sequence[ModelEntry]:
        """Returns the installed models, listed again; as listed last if the worker does not answer."""
        with suppress(TimeoutError, WorkerError, CommandError):
            async with asyncio.timeout(_LIST_S):
                await self._list()
        return self.state.models

    def load(self, reference: str) -> None:
        """Load a model, unless an answer is in progress. A load in progress is abandoned."""
        if self.may_choose:
            self._next = ""
            if self._awaited and self._awaited.reference != reference:
                self._fetched = ""
                self._forget_awaited()
            self._app.handle(Load(reference))

    def load_next(self, reference: str) -> bool:
        """Load a model, once the current answer and load are over. Returns whether it is loaded at once."""
        self._next, at_once = reference, self.can_load
        self._load_next()
        return at_once

    def unload(self) -> None:
        if self.can_load and self.state.info:
            self._app.handle(Unload())

    def download(self, model: str) -> None:
        """Download a model from the hub, or resume."""
        self._send(DownloadModel(model))

    def fetch(self, model: str) -> None:
        """Download a model and load it afterwards."""
        self._fetched = model
        self.download(model)

    def pause(self, model: str) -> None:
        """Pause a download and keep its data."""
        self._send(PauseDownload(model))

    def cancel(self, model: str) -> None:
        """Cancel a download and delete its data."""
        self._send(CancelDownload(model))

    def take_folder(self, path: str) -> None:
        self._begin(ImportModel("", path), ModelImported)

    def remove(self, reference: str) -> None:
        """Delete a model, or remove it from the list."""
        self._begin(RemoveModel("", reference), ModelRemoved)

    def look_up(self, text: str) -> None:
        """Search the hub; an empty text clears the results."""
        self._set(models.look_up(self.state, text if self.alive else ""))
        if text:
            self._begin(LookUpModels("", text), ModelsFound)

    @property
    def draft(self) -> str:
        return str(read(self._inspector.settings, DRAFT_KEY))

    def choose_draft(self, reference: str) -> None:
        """Set the draft model of the open chat; empty for none."""
        self._inspector.change_settings(assign(self._inspector.settings, DRAFT_KEY, reference))

    def make_default(self, reference: str) -> None:
        self._preferences.change(model=reference)
        self.changed.emit()

    def dismiss(self) -> None:
        if self.state.problem:
            self._set(replace(self.state, problem="", hint=""))

    # ---- events

    def on_list(self, event: ModelList) -> None:
        """Handle a list that follows a change."""
        self._take(event)

    def on_progress(self, event: DownloadProgress) -> None:
        self._take(event)
        if event.model == self._fetched:
            self._follow_fetched(event)

    def on_load_failed(self, effect: fx.LoadFailed) -> None:
        self._set(models.fail(self.state, effect.failed))
        self._forget_awaited()

    def on_load_started(self, effect: fx.LoadStarted) -> None:
        state = replace(self.state, loading=effect.model, fraction=effect.fraction, problem="", hint="")
        self._set(state)

    def on_finished(self, finished: Finished) -> None:
        """Store the figures of an answer of the loaded model, and ask for the measurements."""
        if self.state.info:
            self.last_stats = (self.state.info.path, finished.stats)
        if self._watched and (finished.effective.exactness or finished.stats.accepted):
            self.refresh()

    def follow(self, link: Link) -> None:
        """Update after a change of the worker, its model or its turn."""
        state = self.state if self.alive else models.forget_worker(self.state)
        loading = state.loading if link.loading else ""
        info = link.info if self.alive else None
        self._set(
            replace(
                state,
                info=info,
                loading=loading,
                busy=link.busy,
                released=link.released,
            )
        )
        self._load_next()
        if not self.alive:
            self._forget_awaited()
        elif self._awaited and info is not None and info.reference == self._awaited.reference:
            self._preferences.change(model=info.reference)
            self._forget_awaited()
        loaded = state.info is None and info is not None
        if loaded and not self._watched and not self._preferences.now.model_offered:
            self.refresh()

    def on_worker_ready(self, effect: fx.WorkerReady) -> None:
        if self.state.problem == strings.NO_WORKER:
            self.dismiss()
        if self._watched:
            self.refresh()

    # ---- inside

    def _follow_fetched(self, progress: DownloadProgress) -> None:
        if progress.state == "running":
            return
        self._fetched = ""
        if progress.state == "done":
            self.load_next(progress.model)
        elif (awaited := self._forget_awaited()) and progress.state == "failed":
            self._app.views.notice_bar.show_notice(
                strings.not_fetched(awaited.name, progress.problem), kind="warning"
            )

    def _forget_awaited(self) -> ModelEntry | None:
        """End the wait for the accepted suggestion. Returns it; None if there was none."""
        awaited, self._awaited = self._awaited, None
        if awaited:
            self._show_lead()
            self.wait_ended.emit()
        return awaited

    def _load_next(self) -> None:
        if self._next and self.can_load:
            self.load(self._next)

    def _set(self, state: ModelsState) -> None:
        self.state = state
        self._show_lead()
        self.changed.emit()

    def _show_lead(self) -> None:
        self._offered = None
        if self.state.info is not None and not self._preferences.now.model_offered:
            self._offered = models.model_to_offer(self.state)
        lead = None
        if self._awaited and not self.state.loading:
            lead = self._lead_of_download(self._awaited)
        elif self._offered:
            lead = Lead(
                strings.offer_title(self._offered.name),
                strings.offer_text(self._offered.good_at, self._offered.disk_bytes, sees=self._offered.sees),
                None,
                strings.DOWNLOAD_OFFERED,
                strings.USE_STARTER,
            )
        self._app.views.first_page.show_lead(lead)

    def _lead_of_download(self, entry: ModelEntry) -> Lead:
        told = self.state.download(entry.reference)
        fraction, progress = 0.0, ""
        if told and told.total_bytes:
            fraction = told.done_bytes / told.total_bytes
            arrived = strings.arrived(told.done_bytes, told.total_bytes)
            pace = strings.pace(told.bytes_per_s, told.seconds_left) if told.bytes_per_s else ""
            progress = strings.joined((arrived, pace))
        text = strings.fetching_text(progress)
        return Lead(strings.fetching_title(entry.name), text, fraction, other_button=strings.CANCEL_DOWNLOAD)

    def _answer_offer(self, accepted: bool) -> None:
        entry, self._offered = self._offered, None
        if entry is None:
            return
        self._preferences.change(model_offered=True)
        if accepted:
            self._awaited = entry
            self.fetch(entry.reference)
        self._show_lead()

    def _decline(self) -> None:
        """Use the starter for now, or cancel the accepted download."""
        if self._awaited:
            self.cancel(self._awaited.reference)
        else:
            self._answer_offer(False)

    def _begin(self, command: CatalogueCommand, kind: type[CatalogueEvent]) -> None:
        if self._reaches_worker():
            self._app.worker.begin(self._ask(command, kind))

    def _send(self, command: CatalogueCommand) -> None:
        if self._reaches_worker():
            self._app.worker.send(command)

    def _reaches_worker(self) -> bool:
        """Whether there is a worker to send a command to; shows that there is none."""
        if not self.alive:
            self._set(replace(self.state, problem=strings.NO_WORKER, hint=""))
        return self.alive

    async def _ask(self, command: CatalogueCommand, kind: type[CatalogueEvent]) -> None:
        try:
            event = await self._app.worker.ask(command, kind)
        except CommandError as error:
            searched = command.text if isinstance(command, LookUpModels) else ""
            self._set(models.fail(self.state, error.failed, searched))
            return
        self._take(event)
        if isinstance(event, ModelImported):
            self.imported.emit(event.model.reference)

    def _take(self, event: CatalogueEvent) -> None:
        self._set(models.handle(self.state, event))


def fill_model_menu(menu: QMenu, models: ModelsController, context_tokens: int) -> None:
    """Add the installed models. `context_tokens` is the context for which their memory is estimated."""
    state, group = models.shown, QActionGroup(menu)
    names = names_of(state.models)
    for entry in state.models:
        action = menu.addAction(in_menu(_label(names[entry.reference], entry, context_tokens, state)))
        action.setCheckable(True)
        action.setChecked(state.loaded is entry)
        action.setEnabled(not entry.problem and models.may_choose)
        action.setToolTip(entry.problem)
        group.addAction(action)
        action.triggered.connect(lambda checked=False, one=entry: _load(models, one))
    menu.setToolTipsVisible(True)
    menu.addSeparator()


def _load(models: ModelsController, entry: ModelEntry) -> None:
    if models.state.loaded is not entry:
        models.load(entry.reference)


def _label(name: str, entry: ModelEntry, context_tokens: int, state: ModelsState) -> str:
    tokens = min(context_tokens, entry.context_tokens or context_tokens)
    fit = fit_facts(entry, tokens, state.limit_bytes, kv=state.kv)
    words = strings.FIT_WORDS[fit.fit].lower() if fit else ""
    if entry.problem and (fit is None or fit.fit != "too-large"):
        words = strings.CANNOT_LOAD
    return f"{name}   ·   {words}" if words else name

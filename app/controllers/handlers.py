"""Handlers: each effect of the state machine, each message out of band, and the one method that handles it.

A new one needs a line here; without it the window does not start. Where it concerns several controllers,
the method is here and calls them in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from app.controllers.chat.chat_settings import ChatSettings
from app.controllers.chat.titles import TitleController
from app.controllers.documents.embedding import EmbeddingController
from app.controllers.models import ModelsController
from app.controllers.running_answer import RunningAnswer
from app.controllers.saved_chats import SavedChatsController
from app.controllers.server.sharing import WorkerSharing
from app.controllers.tables import TablesController
from app.controllers.trouble import TroubleController
from app.controllers.worker import WorkerController
from app.session.turn import effects as fx
from app.session.turn.turn import OUT_OF_BAND
from app.session.worker.trouble import Until
from core.events import (
    DocumentEmbedded,
    DownloadProgress,
    MachineFigures,
    MachinesChecked,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    Rehearsing,
    SavedChatsListed,
    SimilarFound,
    TableDone,
    TableList,
    TableStatus,
    TitleSuggested,
)


class Handlers:
    """`send` and `restart` are what is done to the worker's process."""

    def __init__(
        self,
        send: Callable[[fx.Send], None],
        restart: Callable[[], None],
        answer: RunningAnswer,
        worker: WorkerController,
        trouble: TroubleController,
        tables: TablesController,
        models: ModelsController,
        settings: ChatSettings,
        sharing: WorkerSharing,
        titles: TitleController,
        embedding: EmbeddingController,
        saved_chats: SavedChatsController,
    ) -> None:
        self._restart = restart
        self._answer = answer
        self._worker = worker
        self._trouble = trouble
        self._models = models
        self._tables = tables
        self._settings = settings
        self._titles = titles
        self._embedding = embedding
        self.table: dict[type, Callable[[Any], None]] = {
            fx.Send: send,
            fx.RestartWorker: self._on_restart,
            fx.LoadStarted: self._on_load_started,
            fx.ModelReady: self._on_model_ready,
            fx.ModelGone: self._on_model_gone,
            fx.LoadFailed: self._on_load_failed,
            fx.AnswerBegun: answer.on_begun,
            fx.ReadingHeard: answer.on_reading,
            fx.MapHeard: answer.on_map,
            fx.TokenHeard: answer.on_token,
            fx.GaugesHeard: answer.on_gauges,
            fx.AnswerFinished: self._on_finished,
            fx.AnswerFailed: answer.on_failed,
            fx.AnswerCutOff: answer.on_cut_off,
            fx.ServedHeard: sharing.on_served,
            fx.ServedCutOff: sharing.on_served_cut_off,
            fx.TroubleHeard: trouble.on_trouble,
            fx.Counted: worker.on_counted,
            fx.OutOfBand: self._on_out_of_band,
            fx.TablesFailed: tables.on_tables_failed,
            fx.ModelsFailed: models.on_models_failed,
            fx.MemoryHeard: worker.on_memory,
            fx.WorkerDied: self._on_worker_died,
            fx.WorkerStuck: trouble.on_worker_stuck,
            fx.SilenceBroken: trouble.on_silence_broken,
            fx.WindowMistake: trouble.on_window_mistake,
            fx.WorkerMistake: trouble.on_worker_mistake,
        }
        self.out_of_band: dict[type, Callable[[Any], None]] = {
            TableList: tables.on_event,
            TableStatus: self._on_table_status,
            TableDone: tables.on_event,
            Rehearsing: tables.on_event,
            TitleSuggested: titles.on_suggested,
            DocumentEmbedded: embedding.on_embedded,
            SimilarFound: embedding.on_similar,
            SavedChatsListed: saved_chats.on_listed,
            ModelList: models.on_event,
            ModelsFound: models.on_event,
            DownloadProgress: models.on_event,
            ModelImported: models.on_event,
            ModelRemoved: models.on_event,
            MachinesChecked: models.on_event,
            MachineFigures: self._on_machine_figures,
        }
        odd = set(self.table) ^ set(get_args(fx.Effect)) | set(self.out_of_band) ^ set(OUT_OF_BAND)
        if odd:
            raise TypeError(f"Not exactly one handler: {', '.join(sorted(each.__name__ for each in odd))}.")

    def carry_out(self, effect: fx.Effect) -> None:
        """Do what `effect` asks for, or show what it says."""
        self.table[type(effect)](effect)

    def _on_out_of_band(self, effect: fx.OutOfBand) -> None:
        self.out_of_band[type(effect.event)](effect.event)

    def _on_table_status(self, status: TableStatus) -> None:
        """What people must know of the tables is said where they look; all of it to who shows tables."""
        self._tables.on_event(status)
        if status.notes:
            self._trouble.on_tables_warned(status)

    def _on_machine_figures(self, figures: MachineFigures) -> None:
        self._models.on_event(figures)
        self._worker.on_machines(figures)

    def _on_restart(self, effect: fx.RestartWorker) -> None:
        self._worker.forget()
        self._titles.forget()
        self._embedding.forget()
        self._trouble.end(Until.READY)
        self._restart()

    def _on_worker_died(self, effect: fx.WorkerDied) -> None:
        self._worker.forget()
        self._titles.forget()
        self._embedding.forget()
        self._trouble.on_worker_died(effect, self._answer.take_lost())

    def _on_load_started(self, effect: fx.LoadStarted) -> None:
        self._models.on_load_started(effect)
        self._worker.on_load_started(effect)

    def _on_model_ready(self, effect: fx.ModelReady) -> None:
        self._worker.on_model_ready(effect)
        self._settings.set_model(effect.info)
        self._trouble.on_model_ready(effect)

    def _on_model_gone(self, effect: fx.ModelGone) -> None:
        self._worker.on_model_gone(effect)
        self._settings.set_model(None)

    def _on_load_failed(self, effect: fx.LoadFailed) -> None:
        self._models.on_models_failed(effect)
        self._trouble.on_load_failed(effect)

    def _on_finished(self, effect: fx.AnswerFinished) -> None:
        self._models.note_stats(effect.finished.stats)
        self._answer.on_finished(effect)

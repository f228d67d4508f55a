"""The handler of each effect and of each out-of-band event.

A new effect or event needs a line here; without it the window does not start. A method here calls several
controllers in order where more than one is concerned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, get_args

from app.controllers.chat.chat_settings import ChatSettings
from app.controllers.chat.titles import TitleController
from app.controllers.trouble import TroubleController
from app.controllers.worker import WorkerController
from app.features.models.controller import ModelsController
from app.features.server.server import WorkerSharing
from app.features.tables.controller import TablesController
from app.features.worker_caches import EmbeddingController, SavedChatsController
from app.session.turn import effects as fx
from app.session.turn.turn import OUT_OF_BAND
from app.session.worker.trouble import Until
from core.events import (
    DocumentEmbedded,
    DownloadProgress,
    Failed,
    Finished,
    Gauges,
    MachineFigures,
    MachinesChecked,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    PrefillProgress,
    ReadingMap,
    Rehearsing,
    SavedChatsListed,
    SimilarFound,
    TableDone,
    TableList,
    TableStatus,
    TitleSuggested,
    Token,
)


class Handlers:
    """`send` writes a command to the worker, `restart` replaces it."""

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
        """Perform or show `effect`."""
        self.table[type(effect)](effect)

    def _on_out_of_band(self, effect: fx.OutOfBand) -> None:
        self.out_of_band[type(effect.event)](effect.event)

    def _on_table_status(self, status: TableStatus) -> None:
        """Warnings about the tables go to the banner, the whole status to the Tables window."""
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


class AnswerListener(Protocol):
    """The receiver of an answer: chat or race.

    `begin()` comes first; `finish()`, `fail()` or `cut_off()` last, with the number of tokens where that
    decides whether the question is kept.
    """

    def begin(self) -> None: ...

    def read(self, progress: PrefillProgress) -> None: ...

    def choose(self, reading: ReadingMap) -> None: ...

    def write(self, token: Token) -> None: ...

    def measure(self, gauges: Gauges) -> None: ...

    def finish(self, finished: Finished) -> None: ...

    def fail(self, failed: Failed, tokens: int) -> None: ...

    def cut_off(self, tokens: int, *, closing: bool) -> None: ...


class RunningAnswer:
    """Passes the events of an answer to its listener.

    `listener_of` returns the listener of a request. `tell_mistake` reports a token out of order.
    """

    def __init__(
        self, listener_of: Callable[[str], AnswerListener], tell_mistake: Callable[[fx.WorkerMistake], None]
    ) -> None:
        self._listener_of = listener_of
        self._tell_mistake = tell_mistake
        self._tokens = 0
        self._lost: int | None = None

    def on_begun(self, effect: fx.AnswerBegun) -> None:
        self._tokens, self._lost = 0, None
        self._listener_of(effect.request).begin()

    def on_reading(self, effect: fx.ReadingHeard) -> None:
        self._listener_of(effect.progress.request).read(effect.progress)

    def on_map(self, effect: fx.MapHeard) -> None:
        self._listener_of(effect.map.request).choose(effect.map)

    def on_token(self, effect: fx.TokenHeard) -> None:
        """Pass a token on. One out of order is dropped and reported."""
        token = effect.token
        if token.position != self._tokens:
            where = f"Token has position {token.position} where {self._tokens} comes next."
            self._tell_mistake(fx.WorkerMistake(where))
            return
        self._tokens += 1
        self._listener_of(token.request).write(token)

    def on_gauges(self, effect: fx.GaugesHeard) -> None:
        self._listener_of(effect.gauges.request).measure(effect.gauges)

    def on_finished(self, effect: fx.AnswerFinished) -> None:
        self._listener_of(effect.finished.request).finish(effect.finished)

    def on_failed(self, effect: fx.AnswerFailed) -> None:
        self._listener_of(effect.failed.request).fail(effect.failed, self._tokens)

    def on_cut_off(self, effect: fx.AnswerCutOff) -> None:
        """The worker exited."""
        self._lost = self._tokens
        self._listener_of(effect.request).cut_off(self._tokens, closing=effect.closing)

    def take_lost(self) -> int | None:
        """Returns the tokens of the answer that was last cut off, once; None if there was none."""
        lost, self._lost = self._lost, None
        return lost

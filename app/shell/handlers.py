"""The handlers of each effect. A new effect or event needs a line here, or the window does not start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from app.controllers.chat_settings import ChatSettings
from app.controllers.worker import TroubleController, WorkerController
from app.features.models.controller import ModelsController
from app.features.tables.controller import TablesController
from app.features.worker_caches import EmbeddingController, SavedChatsController
from app.session.turn import effects as fx
from app.session.turn.turn import EFFECTS
from core.events import (
    DownloadProgress,
    Finished,
    Heartbeat,
    ModelList,
    ReadAheadProgress,
    SavedChatsListed,
    TableStatus,
)


class Handlers:
    """`send` writes a command to the worker, `restart` replaces it, `answer` gets the events of an answer.

    `table` has the handlers of each effect, in the order of their calls.
    """

    def __init__(
        self,
        send: Callable[[fx.Send], None],
        restart: Callable[[fx.RestartWorker], None],
        answer: Callable[[fx.AnswerEvent], None],
        worker: WorkerController,
        trouble: TroubleController,
        tables: TablesController,
        models: ModelsController,
        settings: ChatSettings,
        embedding: EmbeddingController,
        saved_chats: SavedChatsController,
    ) -> None:
        gone = (
            worker.on_worker_gone,
            tables.on_worker_gone,
            embedding.on_worker_gone,
            saved_chats.on_worker_gone,
        )
        self.table: dict[type, tuple[Callable[[Any], None], ...]] = {
            fx.Send: (send,),
            fx.RestartWorker: (*gone, trouble.on_restart, restart),
            fx.WorkerReady: (
                models.on_worker_ready,
                tables.on_worker_ready,
                embedding.on_worker_ready,
                saved_chats.on_worker_ready,
            ),
            fx.LoadStarted: (models.on_load_started, worker.on_load_started),
            fx.ModelReady: (
                worker.on_model_ready,
                settings.on_model_ready,
                tables.on_model,
                saved_chats.on_model_ready,
                trouble.on_model_ready,
            ),
            fx.ModelGone: (worker.on_model_gone, settings.on_model_gone, tables.on_model),
            fx.LoadFailed: (models.on_load_failed, trouble.on_load_failed),
            **dict.fromkeys(get_args(fx.AnswerEvent), (answer,)),
            Finished: (models.on_finished, answer),
            fx.TroubleHeard: (trouble.on_trouble,),
            Heartbeat: (worker.on_heartbeat,),
            fx.WorkerDied: (*gone, trouble.on_worker_died),
            fx.WorkerStuck: (trouble.on_worker_stuck,),
            fx.SilenceBroken: (trouble.on_silence_broken,),
            fx.WindowMistake: (trouble.on_window_mistake,),
            fx.WorkerMistake: (trouble.on_worker_mistake,),
            TableStatus: (tables.on_status, trouble.on_table_status),
            SavedChatsListed: (saved_chats.on_listed,),
            ReadAheadProgress: (saved_chats.on_read_ahead,),
            ModelList: (models.on_list,),
            DownloadProgress: (models.on_progress,),
        }
        odd = set(self.table) ^ EFFECTS
        if odd:
            raise TypeError(f"Not exactly one line: {', '.join(sorted(each.__name__ for each in odd))}.")

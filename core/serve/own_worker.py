"""OwnWorker: the worker process of `draftlight serve`, restarted when it exits.

Starts a worker, loads the model, forwards its events, and starts another worker when it exits or becomes
silent. Gives up after several exits in a row before the model was loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from core.errors import WorkerError
from core.events import (
    ClusterEnded,
    Failed,
    Hello,
    LoadModel,
    LoadProgress,
    ModelLoaded,
    ModelReleased,
    UnloadIdle,
)
from core.events.codec import WorkerEvent, WorkerExited, WorkerSilent
from core.serve.queue import WorkerGate
from core.worker.client import WorkerClient

_TRIES = 3
_PAUSE_S = 0.5

Told = (
    LoadProgress
    | ModelLoaded
    | ModelReleased
    | Failed
    | ClusterEnded
    | WorkerExited
    | WorkerSilent
    | WorkerError
)


class OwnWorker:
    """`tell` receives events for the person at the terminal.

    The worker unloads the model after `unload_after_s` seconds without a request; 0: never.
    """

    def __init__(
        self,
        model: str,
        tell: Callable[[Told], None],
        unload_after_s: float = 0.0,
    ) -> None:
        self._unload_after_s = unload_after_s
        self._model = model
        self._tell = tell
        self._life: asyncio.Task[None] | None = None
        self._stopping = False
        self._client = WorkerClient()
        self.gate = WorkerGate(self._client)
        self.ended = asyncio.Event()

    def start(self) -> None:
        """Start the worker. `ended` is set when no worker can be started any more."""
        self._life = asyncio.ensure_future(self._live())

    def retire(self) -> None:
        """Start no other worker if this one exits: a signal may end the whole process group."""
        self._stopping = True

    async def stop(self) -> None:
        """Stop the worker. Safe to call twice."""
        self.retire()
        await self._client.stop()
        if self._life is not None:
            await self._life

    async def _live(self) -> None:
        tries = 0
        try:
            while not self._stopping and tries < _TRIES:
                tries = 0 if await self._one() == "answered" else tries + 1
                if not self._stopping:
                    await asyncio.sleep(_PAUSE_S)
        finally:
            self.gate.follow("empty", None)  # no worker can be started
            self.ended.set()

    async def _one(self) -> Literal["answered", "failed"]:
        """Run one process to its end; returns whether it loaded the model."""
        came = False
        client = WorkerClient()
        try:
            await client.start()
        except WorkerError as error:
            self._tell(error)
            return "failed"
        self._client = self.gate.worker = client
        self._tell(LoadProgress(self._model, "Starting", None))
        try:
            if self._stopping:
                await client.stop()
            async for heard in client.events():
                self._told(heard, client)
                came = came or isinstance(heard, ModelLoaded)
        finally:
            await client.stop()
        return "answered" if came else "failed"

    def _told(self, heard: WorkerEvent, client: WorkerClient) -> None:
        match heard:
            case Hello():
                client.post(LoadModel(self._model))
                if self._unload_after_s:
                    client.post(UnloadIdle(self._unload_after_s))
            case Failed(command="load_model" | "start"):
                # The same model, or another process, would fail again.
                self._tell(heard)
                self._stopping = True
                asyncio.get_running_loop().call_soon(client.kill)
            case WorkerSilent():
                self._tell(heard)
                client.kill()
            case WorkerExited() if not self._stopping:
                self._tell(heard)
            case ModelReleased() if self.gate.open:
                pass  # it makes room for the other one
            case ClusterEnded():
                # The other ranks ended, too; only mlx.launch can start them again.
                self._tell(heard)
                self._stopping = True
            case ModelLoaded(info):
                self._model = info.reference  # the one that the next worker loads
                self._tell(heard)
            case LoadProgress() | ModelReleased():
                self._tell(heard)
            case _:
                pass
        self.gate.handle(heard)

"""InstalledModels: requests load the installed model that they name, each in its turn.

A request for another model waits in the queue like any other. When its turn comes, the model is loaded, and
its command is made for that model; so no answer is interrupted, and a request behind it that names the
previous model gets that one back. Names that no installed model has are answered by the loaded model. On the
server's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from core.events import Failed, ModelEntry, ModelInfo, api_id
from core.serve.queue import Answers, Ticket

# Names that clients send where they do not mean a certain model.
ANY_MODEL = ("", "draftlight", "default")


class InstalledModels:
    """`listed` returns the models on this machine from their folders; it is called on another thread."""

    def __init__(self, listed: Callable[[], Sequence[ModelEntry]]) -> None:
        self._listed = listed
        # Models that were loaded from folders that are not listed.
        self._known: dict[str, ModelInfo] = {}

    async def entries(self) -> list[ModelEntry]:
        """The models that can be loaded."""
        return [entry for entry in await asyncio.to_thread(self._listed) if not entry.problem]

    async def turn(self, answers: Answers, wanted: str, who: str) -> Ticket | Failed:
        """Wait for the turn of a request of the client `who` for the model `wanted`, and load that model.

        Returns the ticket, which is first in the queue, or why the model could not be loaded; the previous
        one answers again then. Raises `QueueFullError`.
        """
        reference = await self._reference(answers.gate.model, wanted)
        moved = asyncio.Event()
        ticket = answers.enter(who, moved.set)
        try:
            while ticket.position:
                moved.clear()
                await moved.wait()
            await answers.gate.settled()
            loaded = answers.gate.model
            if loaded is not None and reference not in ("", loaded.reference):
                self._known[loaded.reference] = loaded
                if failed := await answers.gate.load(reference):
                    ticket.leave()
                    return failed
        except BaseException:
            ticket.leave()
            raise
        return ticket

    async def _reference(self, loaded: ModelInfo | None, wanted: str) -> str:
        """The reference of the model `wanted`; empty if it names none of them."""
        name = wanted.strip().lower()
        if name in ANY_MODEL:
            return ""
        names = {info.reference: _names(info) for info in (loaded, *self._known.values()) if info}
        names |= {entry.reference: _names(entry) for entry in await self.entries()}
        exact = [reference for reference in names if reference.lower() == name]
        # Clients put the name of a provider before a model's name.
        close = [reference for reference, own in names.items() if name.rpartition("/")[2] in own]
        if loaded is not None and not exact and loaded.reference in close:
            return loaded.reference
        return next(iter((*exact, *close)), "")


def _names(model: ModelInfo | ModelEntry) -> set[str]:
    names = (model.reference, model.name, api_id(model.name))
    return {name.lower().rpartition("/")[2] for name in names} - {""}


def entry_shape(entry: ModelEntry, since: int) -> dict[str, Any]:
    """A model that is not loaded, as `/v1/models` lists it; fields as in `core.serve.models.shape`."""
    return {
        "id": api_id(entry.name),
        "object": "model",
        "created": since,
        "owned_by": "draftlight",
        "name": entry.name,
        "display_name": entry.name,
        "context_length": entry.context_tokens,
        "max_model_len": entry.context_tokens,
        "max_context_length": entry.context_tokens,
        "state": "not-loaded",
        "type": "llm",
        "arch": entry.architecture,
        "compatibility_type": "mlx",
        "parameters": entry.parameters,
    }

"""WorkerGate: one worker shared by many requests. Sends their commands, tells each what is heard of it.

Whoever owns the worker's process gives `send` and passes on all that is heard to `hear`. The gate starts
and ends nothing. A worker that dies ends its open requests with a `Failed` each; the next one waits until
a model is loaded again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Literal

from msgspec.structs import replace

from core.events import (
    Cancel,
    Command,
    CountTokens,
    EmbedTexts,
    Event,
    Failed,
    Finished,
    Generate,
    LoadProgress,
    ModelInfo,
    ModelLoaded,
    ModelUnloaded,
    TextsEmbedded,
    TokenCount,
)
from core.events.heard import Heard, WorkerExited

# `starting`: a model will be there; `empty`: nobody loads one.
GateState = Literal["starting", "ready", "empty"]
Hear = Callable[[Event], None]
_ENDS = (Finished, Failed, TokenCount, TextsEmbedded)
_DIED = "The worker that was answering ended."
_DIED_HINT = "Ask again: another one is being started."


class WorkerGate:
    """`changed` listeners hear that the state or the model is another one. `wanted` hears that somebody
    waits for a model: an owner that starts none by itself may do it then.
    """

    def __init__(self, send: Callable[[Command], None], wanted: Callable[[], None] = lambda: None) -> None:
        self._send = send
        self._wanted = wanted
        self._open: dict[str, Hear] = {}
        self._counts = count(1)
        self._listeners: list[Callable[[], None]] = []
        self.state: GateState = "starting"
        self.model: ModelInfo | None = None

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from now on; what is returned ends that."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def want(self) -> None:
        """Somebody waits for a model."""
        if self.state == "starting":
            self._wanted()

    def ask(self, generate: Generate, hear: Hear) -> None:
        """Send it. `hear` gets its events, `Finished` or `Failed` last. Its id must be new."""
        self._begin(generate.request, generate, hear)

    def count(self, text: str, hear: Hear) -> str:
        """Count the tokens of `text`; the id. `hear` gets a `TokenCount` or `Failed`."""
        return self._count(CountTokens("", text), hear)

    def count_prompt(self, generate: Generate, hear: Hear) -> str:
        """Count the tokens of the prompt that `generate` would have; the same."""
        return self._count(CountTokens("", prompt=generate), hear)

    def embed(self, texts: tuple[str, ...], hear: Hear) -> None:
        """Compute the vectors of a few texts. `hear` gets a `TextsEmbedded` or `Failed`."""
        request = f"embed-{next(self._counts)}"
        self._begin(request, EmbedTexts(request, texts), hear)

    def cancel(self, request: str) -> None:
        """Stop it within a step or a chunk; it ends with its `Finished`. Unknown ids are ignored."""
        if request in self._open:
            self._send(Cancel(request))

    @property
    def open(self) -> tuple[str, ...]:
        """The requests that were sent and did not end."""
        return tuple(self._open)

    # ---- for the owner of the worker

    def hear(self, heard: Heard) -> bool:
        """Take what was heard of the worker. Returns whether it was for one of the requests here."""
        match heard:
            case WorkerExited():
                self.lose()
            case ModelLoaded(info):
                self._set("ready", info)
            case ModelUnloaded():
                self._set("empty", None)
            case LoadProgress() if self.model is None:
                self._set("starting", None)
            case Failed(request, command="load_model") if not request and self.model is None:
                self._set("empty", None)
            case _:
                return self._pass_on(heard)
        return False

    def follow(self, state: GateState, model: ModelInfo | None) -> None:
        """For an owner that knows by itself how its worker stands, and gives `hear` the requests' events."""
        self._set(state, model)

    def lose(self) -> None:
        """The worker is gone. One that had a model is started again, by whoever owns it."""
        self._set("empty" if self.state == "empty" else "starting", None)
        self._end_all()

    def give_up(self) -> None:
        """No worker can be started."""
        self._set("empty", None)
        self._end_all()

    def _count(self, command: CountTokens, hear: Hear) -> str:
        request = f"count-{next(self._counts)}"
        self._begin(request, replace(command, request=request), hear)
        return request

    def _begin(self, request: str, command: Command, hear: Hear) -> None:
        if request in self._open:
            raise ValueError(f"{request} is being answered")
        self._open[request] = hear
        self._send(command)

    def _pass_on(self, heard: Heard) -> bool:
        request = getattr(heard, "request", "")
        hear = self._open.get(request)
        if hear is None:
            return False
        if isinstance(heard, _ENDS):
            del self._open[request]
        hear(heard)  # type: ignore[arg-type]
        return True

    def _end_all(self) -> None:
        ended, self._open = self._open, {}
        for request, hear in ended.items():
            hear(Failed(request, "generate", "worker", "worker-failed", _DIED, _DIED_HINT))

    def _set(self, state: GateState, model: ModelInfo | None) -> None:
        if (state, model) == (self.state, self.model):
            return
        self.state, self.model = state, model
        for changed in tuple(self._listeners):
            changed()

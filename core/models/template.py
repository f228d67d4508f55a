"""TemplateRenderer: renders a model folder's chat template in a process with limits.

A template is an untrusted program: it can loop forever, or allocate all memory in one expression. A separate
process (`template_child`) therefore compiles and renders it, and remains for the next turn. A process that
takes too long is killed, and the next turn starts another.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from msgspec import Struct

from core.errors import ChatTemplateError
from core.models.traced import Run
from core.system.children import CHILD_FOLDER, child_command, child_environment

# Real templates take milliseconds, even for a full context.
RENDER_S = 10.0
# The first rendering may coincide with the reading of weights.
_START_S = 60.0
MEMORY_BYTES = 512 * 1024 * 1024
# Limit of the text that the template adds, a thousand times that of real templates.
_OWN_CHARACTERS = 1_000_000
# A template may write a content twice, or with each character escaped.
_TIMES_CONTENT = 8

_CHOOSE = "Choose another model, or fix the chat template in its folder."


class Rendering(Struct, frozen=True):
    """A rendered conversation. `runs` are the characters of `text` that come from messages and tools.

    A run's source is `2 * n` for the content of message `n`, `2 * n + 1` for its other fields, and negative
    for tools.
    """

    text: str
    runs: tuple[Run, ...] = ()


class RefusedError(ChatTemplateError):
    """The template raised an error for this conversation; `why` is its message."""

    def __init__(self, model: str, why: str) -> None:
        self.why = why
        super().__init__(
            model,
            f"refuses this conversation: {why.rstrip('.')}",
            "Start a new chat, or choose another model.",
        )


class TemplateRenderer:
    """One process at a time, from the first `start` or `render` to `close`. Any thread, one at a time."""

    def __init__(
        self, render_s: float = RENDER_S, memory_bytes: int = MEMORY_BYTES, start_s: float = _START_S
    ) -> None:
        self._render_s = render_s
        self._memory_bytes = memory_bytes
        self._start_s = start_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    @property
    def pid(self) -> int | None:
        """The process's id; None while there is none."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts the process in advance."""
        with self._lock:
            self._started()

    def render(
        self, name: str, template: str, messages: Sequence[Mapping[str, Any]], named: Mapping[str, Any]
    ) -> Rendering:
        """Render `messages` with the `template` of model `name`; `named` are its other variables.

        Raises `RefusedError` if the template refuses, `ChatTemplateError` if it exceeds a limit.
        """
        values = [value for message in messages for key, value in message.items() if key != "role"]
        given = _characters(values) + _characters(named.get("tools"))
        request = {
            "template": template,
            "context": {**named, "messages": messages},
            "characters": _OWN_CHARACTERS + _TIMES_CONTENT * given,
        }
        with self._lock:
            answer = self._asked(name, json.dumps(request).encode() + b"\n")
        match answer:
            case {"text": str(text), "runs": list(numbers)}:
                return Rendering(text, tuple(Run(*run) for run in zip(*[iter(numbers)] * 4)))
            case {"refused": str(why)}:
                raise RefusedError(name, why)
            case {"long": True}:
                raise ChatTemplateError(
                    name, f"writes more than {request['characters']:,} characters", _CHOOSE
                )
        raise ChatTemplateError(
            name, f"takes more than {self._memory_bytes // 2**20:,} MB of memory", _CHOOSE
        )

    def close(self) -> None:
        """Ends the process; a later `render` starts another."""
        with self._lock:
            self._end()

    def _asked(self, name: str, request: bytes) -> Any:
        process = self._started()
        if not self._ready:
            self._exchanged(name, process, b"", self._start_s)
            self._ready = True
        answer = self._exchanged(name, process, request, self._render_s)
        if answer == {"memory": True}:
            self._end()  # it is exiting
        return answer

    def _exchanged(self, name: str, process: subprocess.Popen[bytes], request: bytes, within_s: float) -> Any:
        """Sends `request` and returns the process's reply; ends the process at the time limit."""
        assert process.stdin
        assert process.stdout
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(within_s, end)
        timer.daemon = True
        timer.start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = b""
        finally:
            timer.cancel()
            timer.join()
        if line.endswith(b"\n"):
            return json.loads(line)
        status = self._end()
        if late.is_set():
            raise ChatTemplateError(name, f"took more than {within_s:g} s", _CHOOSE)
        raise ChatTemplateError(name, f"ended the process that rendered it (status {status})", _CHOOSE)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [*child_command("--template"), str(self._memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=child_environment(),
                cwd=CHILD_FOLDER,
            )
        return self._process

    def _end(self) -> int | None:
        """Ends the process and returns its exit status; None if there was none."""
        process, self._process, self._ready = self._process, None, False
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):  # unwritten data is no longer needed
                    pipe.close()
        return process.wait()


def _characters(value: object) -> int:
    """The number of characters of all strings in `value`."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_characters(key) + _characters(each) for key, each in value.items())
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0


@cache
def renderer() -> TemplateRenderer:
    """The renderer of this process; it ends with the process."""
    made = TemplateRenderer()
    atexit.register(made.close)
    return made

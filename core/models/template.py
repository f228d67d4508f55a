"""TemplateRenderer: a model folder's chat template, applied in a process that is bounded.

A template is a program of somebody else: it can loop for ever, or ask for all memory there is in a
single expression. So it is compiled and rendered by a process of its own (`template_child`), which stays
for the next turn; one that takes too long is ended, and the next turn starts another.
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

from core.errors import ChatTemplateError
from core.system.children import CHILD_FOLDER, child_command, child_environment

# Real ones take milliseconds, of a whole context too.
RENDER_S = 10.0
# The first render may come while the machine reads weights.
_START_S = 60.0
MEMORY_BYTES = 512 * 1024 * 1024
# What may come to what people and models said: system prompts of real templates are a thousandth of it.
_OWN_CHARACTERS = 1_000_000
# A template may say a content twice, or with each character escaped.
_TIMES_CONTENT = 8

_CHOOSE = "Choose another model, or put right the chat template in its folder."


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
        """Have the process start, so that the first render need not wait for all of it."""
        with self._lock:
            self._started()

    def render(
        self, name: str, template: str, messages: Sequence[Mapping[str, Any]], named: Mapping[str, Any]
    ) -> str:
        """The `template` of model `name`, given `messages` and what else is `named`.

        Raises `ChatTemplateError`.
        """
        said = sum(len(message["content"]) for message in messages)
        beside = [message["tool_calls"] for message in messages if "tool_calls" in message]
        if tools := [*beside, *(named.get("tools") or ())]:
            said += len(json.dumps(tools, ensure_ascii=False))
        request = {
            "template": template,
            "context": {**named, "messages": messages},
            "characters": _OWN_CHARACTERS + _TIMES_CONTENT * said,
        }
        with self._lock:
            answer = self._asked(name, json.dumps(request).encode() + b"\n")
        match answer:
            case {"text": str(text)}:
                return text
            case {"refused": str(why)}:
                raise refused(name, why)
            case {"long": True}:
                raise ChatTemplateError(
                    name, f"writes more than {request['characters']:,} characters", _CHOOSE
                )
        raise ChatTemplateError(
            name, f"takes more than {self._memory_bytes // 2**20:,} MB of memory", _CHOOSE
        )

    def close(self) -> None:
        """End the process; a later `render` starts another."""
        with self._lock:
            self._end()

    def _asked(self, name: str, request: bytes) -> Any:
        process = self._started()
        if not self._ready:
            self._exchanged(name, process, b"", self._start_s)
            self._ready = True
        answer = self._exchanged(name, process, request, self._render_s)
        if answer == {"memory": True}:
            self._end()  # it is ending itself
        return answer

    def _exchanged(self, name: str, process: subprocess.Popen[bytes], request: bytes, within_s: float) -> Any:
        """The next line of the process after `request`; it is ended where that takes too long."""
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
            raise ChatTemplateError(name, f"was not done after {within_s:g} s", _CHOOSE)
        raise ChatTemplateError(name, f"ended the process that applied it (status {status})", _CHOOSE)

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
        """The process's status, if there was one."""
        process, self._process, self._ready = self._process, None, False
        if process is None:
            return None
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):  # what was not written is for nobody now
                    pipe.close()
        return process.wait()


def refused(name: str, why: str) -> ChatTemplateError:
    """Of a template that says no, and `why`."""
    return ChatTemplateError(
        name,
        f"refuses this conversation: {why.rstrip('.')}",
        "Some models take no system prompt, or need question and answer to alternate.",
    )


@cache
def renderer() -> TemplateRenderer:
    """This process's, ended with it."""
    made = TemplateRenderer()
    atexit.register(made.close)
    return made

"""SweepProcess: the Lab's child process: started, listened to, stopped and let go on, ended.

What it says goes to one callback, in order, on the loop. It pauses by the system's own means, so it
takes no share of the machine at all while the chat is answered (the child measures again what that
interrupted). Ending is asked for first; after a while it is enforced. `close()` leaves nothing behind.

Every method needs the running loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from app.session.lab.lab import Given, Gone, ResultLost, Said, SweepPlan
from core.errors import ProtocolError
from core.events.sweep import decode_sweep_event
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment

_LINE_LIMIT_BYTES = 16 * 1024 * 1024
_TOO_LONG = f"A result of more than {_LINE_LIMIT_BYTES:,} bytes is not shown; the folder has it."
_LOG_LINES = 20
_SHOWN_CHARACTERS = 300
_END_TIMEOUT_S = 5.0


def sweep_command(plan: SweepPlan, out: Path) -> list[str]:
    """How to start the sweep. Its paths are made absolute: it runs in a folder of its own."""
    words = ["bench", "sweep", "--json", "--out", str(out.absolute())]
    words += ["--model", absolute_reference(plan.model)]
    for file in plan.files:
        words += ["--prompts", str(Path(file).absolute())]
    words += ["--classes", ",".join(plan.classes), "--drafters", ",".join(plan.drafters)]
    words += ["--pairs", str(plan.repeats), "--max-tokens", str(plan.max_tokens)]
    words += ["--exactness", plan.exactness]
    if plan.draft_model:
        words += ["--draft-model", absolute_reference(plan.draft_model)]
    if plan.keeps:
        keeps = ",".join(f"{keep:g}" for keep in plan.keeps)
        words += ["--keep", keeps, "--keep-tokens", str(plan.keep_tokens)]
    return child_command(*words)


class SweepProcess:
    """`hear` gets `Said`s and `ResultLost`s and, last of all, one `Gone`."""

    def __init__(self, hear: Callable[[Given], None]) -> None:
        self._hear = hear
        self._life: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._wanted_paused = False
        self._unwanted = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id; None if there is none."""
        return self._process.pid if self._process else None

    def start(self, command: Sequence[str]) -> None:
        """Start it; the one before has ended."""
        self._wanted_paused = self._unwanted = False
        self._life = asyncio.ensure_future(self._live(list(command)))

    def pause(self) -> None:
        """Let it stand still."""
        self._wanted_paused = True
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._wanted_paused = False
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Ask it to end; enforce that if it does not."""
        if self._ending is None and self._life is not None:
            self._ending = asyncio.ensure_future(self._end())

    async def close(self) -> None:
        """End it and wait for everything. Safe to call twice."""
        self.end()
        for task in (self._ending, self._life):
            if task is not None:
                await task
        self._ending = self._life = None

    async def _live(self, command: list[str]) -> None:
        log: deque[str] = deque(maxlen=_LOG_LINES)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_LIMIT_BYTES,
                env=child_environment(PYTHONUNBUFFERED="1"),
                cwd=CHILD_FOLDER,
            )
        except OSError as error:
            self._hear(Gone(f"The sweep could not be started: {error}."))
            return
        self._process = process
        if self._unwanted:  # while it was being started
            self._signal(signal.SIGKILL)
        elif self._wanted_paused:
            self.pause()
        assert process.stdout
        assert process.stderr
        reading = asyncio.ensure_future(_drain(process.stderr, log))
        while line := await _line(process.stdout, lambda: self._hear(ResultLost(_TOO_LONG))):
            try:
                self._hear(Said(decode_sweep_event(line)))
            except ProtocolError as error:
                self._hear(ResultLost(error.message))
        status = await process.wait()
        await reading
        self._process = None
        last = f" Its last words: {log[-1][-_SHOWN_CHARACTERS:]}" if log else ""
        self._hear(Gone(f"The sweep ended by itself with status {status}.{last}"))

    async def _end(self) -> None:
        self._unwanted = True
        process = self._process
        if process is not None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
            try:
                await asyncio.wait_for(process.wait(), _END_TIMEOUT_S)
            except TimeoutError:
                self._signal(signal.SIGKILL)
        self._ending = None

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)


async def _line(stream: asyncio.StreamReader, tell_skipped: Callable[[], object]) -> bytes:
    """The next line, empty at the end. One that is too long is skipped, and told."""
    skipping = False
    while True:
        try:
            line = await stream.readuntil()
        except asyncio.LimitOverrunError as error:
            await stream.readexactly(error.consumed)
            skipping = True
            continue
        except asyncio.IncompleteReadError as error:  # the end
            line = error.partial
        if not skipping:
            return line
        tell_skipped()
        skipping = False
        if not line:
            return line


async def _drain(stream: asyncio.StreamReader, log: deque[str]) -> None:
    while line := await _line(stream, lambda: log.append(_TOO_LONG)):
        if text := line.decode("utf-8", "replace").strip():
            log.append(text)

"""Forks real windows: a process that has imported Qt and the app once, but made no application yet.

Each line on stdin is an `Order`; the child that it forks makes its own application, window and store by
`app.launch.opening.open_window` and does what it is told over the socket that the order names, until it is
killed or closed. On stdout: `{"pid": …}` when it is forked, `{"ended": waitstatus}` when it is gone.

The child says over the socket what its window shows, each thing at once, with the time.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

# All that a window needs: what is imported here is not imported by every child.
from app.chat.intents import Branch
from app.features.chats import DeletedWindow
from app.launch.opening import open_window
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.settings import assign

_LOOK_EVERY_S = 0.015
# More than is ever seen of an answer before its window is killed.
_MAX_TOKENS = 900


class Order(Struct, frozen=True):
    """One window: its data folder, model, worker, and the socket of who directs it."""

    folder: str
    model: str
    worker: list[str]
    address: str


class Task(Struct, frozen=True):
    """What the window is to do. `act` is look, ask, rename, move (into a new project), delete,
    purge or branch."""

    act: str
    chat: str = ""
    text: str = ""


class Report(Struct, frozen=True, omit_defaults=True):
    """What the window did or shows; `at_s` is the system's monotonic clock."""

    what: str
    at_s: float
    chat: str = ""
    turn: str = ""
    text: str = ""
    ids: tuple[int, ...] = ()
    listed: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


class _Driver:
    """Inside the window's process: does tasks, and says what is to be seen."""

    def __init__(self, window: MainWindow, link: socket.socket) -> None:
        self._window = window
        self._link = link
        self._rest = b""
        self._decoder = msgspec.json.Decoder(Task)
        self._turn, self._seen, self._ready, self._trouble = "", 0, False, ""

    async def drive(self) -> int:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._link.fileno(), self._hear)
        watching = asyncio.ensure_future(self._watch())
        await self._window.closed()
        loop.remove_reader(self._link.fileno())
        watching.cancel()
        return 0

    def _hear(self) -> None:
        data = self._link.recv(65536)
        if not data:
            os._exit(9)  # who directs it is gone
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            task = self._decoder.decode(line)
            try:
                self._do(task)
            except Exception as error:
                self._say("error", text=f"{task.act}: {error!r}")

    async def _watch(self) -> None:
        while True:
            controller = self._window.controller
            if ready := controller.link.phase is Phase.READY:
                if not self._ready:
                    self._say("ready")
            elif controller.link.phase in (Phase.DEAD, Phase.NO_MODEL):
                self._say("error", text=f"the worker is {controller.link.phase.value}")
                return
            self._ready = ready
            trouble = self._window.views.banner.trouble
            if trouble and trouble.title != self._trouble:
                self._trouble = trouble.title
                self._say("trouble", text=trouble.title)
            if self._turn and controller.chats.open.has(self._turn):
                tokens = controller.chats.open.turn(self._turn).answer.tokens
                if len(tokens) > self._seen:
                    self._say("tokens", ids=tuple(token.id for token in tokens[self._seen :]))
                    self._seen = len(tokens)
            await asyncio.sleep(_LOOK_EVERY_S)

    def _do(self, task: Task) -> None:
        window, controller = self._window, self._window.controller
        sidebar, transcript = window.views.sidebar, window.views.transcript
        match task.act:
            case "look":
                if task.chat:
                    sidebar.chat_selected.emit(task.chat)
                turns = controller.chats.open.turns if task.chat else ()
                self._say(
                    "look",
                    chat=controller.chats.open.id,
                    listed=tuple(each.id for each in controller.chats.listed() if sidebar.list.row(each.id)),
                    answers=tuple(transcript.answer_text(turn.id) for turn in turns),
                )
            case "ask":
                inspector = window.views.inspector
                inspector.set_settings(assign(inspector.settings, "sampling.max_tokens", _MAX_TOKENS))
                if task.chat:
                    sidebar.chat_selected.emit(task.chat)
                else:
                    sidebar.new_chat_button.click()
                self._turn, self._seen = ask(window, task.text), 0
                self._say("sent", chat=controller.chats.open.id, turn=self._turn)
            case "rename":
                sidebar.rename_requested.emit(task.chat, task.text)
            case "move":
                project = controller.chats.projects.add(task.text)
                sidebar.list.move_requested.emit(task.chat, project.id)
            case "delete":
                sidebar.delete_requested.emit(task.chat)
            case "purge":
                sidebar.delete_requested.emit(task.chat)
                self._erase(task.chat)
            case "branch":
                sidebar.chat_selected.emit(task.chat)
                transcript.intent.emit(Branch(controller.chats.open.turns[-1].id))
            case _:
                raise ValueError(task.act)
        if task.act not in ("look", "ask"):
            self._say("done", chat=controller.chats.open.id)

    def _erase(self, chat_id: str) -> None:
        """Delete a chat for good, as people do: in the window of recently deleted chats."""
        self._window.menu_actions["deleted"].trigger()
        deleted = self._window.windows.find("deleted")
        assert isinstance(deleted, DeletedWindow)
        deleted.list.select(chat_id)
        deleted.erase_button.click()
        deleted.close()

    def _say(self, what: str, **values: Any) -> None:
        self._link.sendall(msgspec.json.encode(Report(what, time.monotonic(), **values)) + b"\n")


def _window(order: Order) -> int:
    """In the child."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.environ["DRAFTLIGHT_HOME"] = order.folder
    link = socket.socket(socket.AF_UNIX)
    link.connect(order.address)
    from pathlib import Path

    return open_window(
        order.model,
        lambda window: _Driver(window, link).drive(),
        scheme="light",
        command=order.worker,
        folder=Path(order.folder),
    )


def main(window: Callable[[Order], int] = _window) -> None:
    """Until stdin ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print('{"pid": 0}', flush=True)  # all is imported
    while line := _line():
        order = msgspec.json.decode(line, type=Order)
        pid = os.fork()
        if pid == 0:
            status = 70
            try:
                status = window(order)
            finally:
                sys.stderr.flush()
                os._exit(status)
        print(f'{{"pid": {pid}}}', flush=True)
        print(f'{{"ended": {os.waitpid(pid, 0)[1]}}}', flush=True)


def _line() -> bytes:
    """Unbuffered, so that a child inherits nothing of it."""
    line = b""
    while not line.endswith(b"\n"):
        read = os.read(0, 4096)
        if not read:
            return b""
        line += read
    return line


if __name__ == "__main__":
    main()

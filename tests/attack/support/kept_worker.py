"""KeptWorker: one real worker that serves one window after the other, for campaigns that kill windows.

Starting a worker takes seconds, most of it imports. A window's own worker process is a `worker_proxy`
here, which ends with the window as a worker does; behind it the kept worker goes on: what it was
answering is cancelled, and what it still says of it reaches no later window. Tokens are passed on at the
pace of a model of ordinary size. `asked` has when each question was given to the worker.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from core.events import (
    Cancel,
    CountTokens,
    Failed,
    Finished,
    Generate,
    Hello,
    Shutdown,
    Token,
    TokenCount,
    decode_command,
    decode_event,
    encode,
)
from core.system.children import CHILD_FOLDER, child_environment
from core.worker.client import worker_command
from tests.attack.support.worker_talk import Broken

_TOKEN_S = 0.006
_START_S = 60.0
_CANCEL_S = 20.0
_PROXY = Path(__file__).with_name("worker_proxy.py")


class KeptWorker:
    """Lives in `folder`. `command` is what a window starts as its worker."""

    def __init__(self, folder: Path) -> None:
        address = str(folder / "worker.sock")
        self.command = [sys.executable, "-I", "-S", str(_PROXY), address]
        self.asked: dict[str, float] = {}
        self._log = (folder / "worker.log").open("wb")
        self._process = subprocess.Popen(
            worker_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=child_environment(DRAFTLIGHT_HOME=str(folder / "worker-home")),
            cwd=CHILD_FOLDER,
        )
        self._hello = b""
        self._began = threading.Event()
        self._link: socket.socket | None = None
        self._running = ""
        self._idle = threading.Event()
        self._idle.set()
        self._barrier = ""
        self._passed = threading.Event()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(address)
        self._server.listen(8)
        works = (self._listen, self._serve)
        self._threads = [threading.Thread(target=work, name="kept-worker", daemon=True) for work in works]
        for thread in self._threads:
            thread.start()

    def begin(self) -> None:
        """Wait for the worker. Raises `Broken`."""
        if not self._began.wait(_START_S):
            raise Broken(f"the kept worker said nothing within {_START_S:g} s")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # closing alone wakes nobody who waits in accept()
        self._server.close()
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):  # what could not be written has no reader any more
                    pipe.close()
        self._log.close()

    def _listen(self) -> None:
        """What the worker says, to the window that is there."""
        assert self._process.stdout
        for line in self._process.stdout:
            event = decode_event(line)
            if isinstance(event, Hello):
                self._hello = line
                self._began.set()
            elif isinstance(event, TokenCount | Failed) and event.request and event.request == self._barrier:
                self._passed.set()
                continue
            if isinstance(event, Finished | Failed) and event.request == self._running:
                self._running = ""
                self._idle.set()
            link = self._link
            if link is not None:
                if isinstance(event, Token):
                    time.sleep(_TOKEN_S)
                with contextlib.suppress(OSError):  # the window is gone: `_serve` sees it, too
                    link.sendall(line)

    def _serve(self) -> None:
        """One window after the other."""
        number = 0
        while True:
            try:
                link = self._server.accept()[0]
            except OSError:
                return  # closed
            number += 1
            self._begin_anew(f"barrier-{number}")
            with contextlib.suppress(OSError):
                link.sendall(self._hello)
                self._link = link
                for line in link.makefile("rb"):
                    command = decode_command(line)
                    if isinstance(command, Shutdown):
                        break
                    if isinstance(command, Generate):
                        self._running = command.request
                        self._idle.clear()
                        self.asked[command.request] = time.monotonic()
                    self._say(line)
            self._link = None
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _begin_anew(self, barrier: str) -> None:
        """Nothing of the window before is under way, and all that was said of it has been heard."""
        if request := self._running:
            self._say(encode(Cancel(request)))
            self._idle.wait(_CANCEL_S)
        self._passed.clear()
        self._barrier = barrier
        self._say(encode(CountTokens(barrier)))
        self._passed.wait(_CANCEL_S)

    def _say(self, line: bytes) -> None:
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.write(line)
            self._process.stdin.flush()


@contextlib.contextmanager
def kept_worker(folder: Path) -> Iterator[KeptWorker]:
    """A worker that has said hello; it ends with the block."""
    worker = KeptWorker(folder)
    try:
        worker.begin()
        yield worker
    finally:
        worker.close()

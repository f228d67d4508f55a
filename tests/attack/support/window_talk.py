"""WindowTalk: one real window after the other, each in a process of its own that can be killed.

Windows are forked by `window_server`. Every wait has a limit; what does not come in time is `Broken`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from core.system.children import child_environment
from tests.attack.support.kept_worker import KeptWorker
from tests.attack.support.window_server import Order, Report, Task
from tests.attack.support.worker_talk import Broken

_IMPORT_S = 60.0
_FORK_S = 10.0
_END_S = 15.0
_REPOSITORY = Path(__file__).resolve().parents[3]


class WindowTalk:
    """`heard` is what the present window said so far."""

    def __init__(self, folder: Path, worker: KeptWorker, model: str) -> None:
        self._model = model
        self._worker = worker
        self._address = str(folder / "window.sock")
        self._doors = socket.socket(socket.AF_UNIX)
        self._doors.bind(self._address)
        self._doors.listen(4)
        self._link: socket.socket | None = None
        self._rest = b""
        self._said = b""
        self._pid = 0
        self.heard: list[Report] = []
        self._log = (folder / "windows.log").open("wb")
        self.log = folder / "windows.log"
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.support.window_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=_REPOSITORY,
            env=child_environment(QT_QPA_PLATFORM="offscreen", DRAFTLIGHT_HOME=str(folder / "unused")),
        )
        self._told("pid", _IMPORT_S)

    def start(self, folder: Path) -> None:
        """A window over `folder`. Raises `Broken` if there is none in time."""
        order = Order(str(folder), self._model, self._worker.command, self._address)
        assert self._server.stdin
        self._server.stdin.write(msgspec.json.encode(order) + b"\n")
        self._server.stdin.flush()
        self.heard, self._rest = [], b""
        self._pid = self._told("pid", _FORK_S)
        if not select.select([self._doors], [], [], _FORK_S)[0]:
            raise Broken("the window did not begin")
        self._link = self._doors.accept()[0]

    def tell(self, act: str, chat: str = "", text: str = "") -> None:
        assert self._link
        with contextlib.suppress(OSError):  # it has ended by itself: whoever waits for it hears that
            self._link.sendall(msgspec.json.encode(Task(act, chat, text)) + b"\n")

    def until(self, what: str, timeout_s: float = 20.0) -> Report:
        """The first report of that kind, of those that were not waited for before."""
        end_s = time.monotonic() + timeout_s
        place = 0
        while True:
            for report in self.heard[place:]:
                if report.what == "error":
                    raise Broken(f"the window could not: {report.text}")
                if report.what == what:
                    return report
            place = len(self.heard)
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise Broken(f"no “{what}” from the window within {timeout_s:g} s")
            if not self._hear(left_s):
                raise Broken(f"the window ended by itself before “{what}”")

    def rest(self, seconds: float) -> None:
        """Listen for a while."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0 and self._hear(left_s):
            pass

    def kill(self, name: str) -> float:
        """When it was sent the signal. Returns once it is gone and all that it said is heard.

        Raises `Broken` if it ends in another way, or hangs.
        """
        at_s = time.monotonic()
        os.kill(self._pid, signal.Signals[name])
        try:
            status = self._told("ended", _END_S)
        except Broken:
            os.kill(self._pid, signal.SIGKILL)
            self._told("ended", _END_S)
            raise Broken(f"the window lived on for {_END_S:g} s after {name}") from None
        finally:
            self._pid = 0
            while self._hear(1.0):
                pass
            if self._link:
                self._link.close()
            self._link = None
        expected = 0 if name == "SIGTERM" else signal.Signals[name].value
        if (status if expected else os.waitstatus_to_exitcode(status)) not in (expected, expected | 0x80):
            raise Broken(f"{name} ended the window with the status {os.waitstatus_to_exitcode(status)}")
        return at_s

    def end(self) -> None:
        """Whatever the window is doing."""
        if self._pid:
            with contextlib.suppress(Broken, ProcessLookupError):
                self.kill("SIGKILL")

    def close(self) -> None:
        self.end()
        self._doors.close()
        self._server.kill()
        self._server.communicate()  # closes the pipes
        self._log.close()

    def _hear(self, seconds: float) -> bool:
        """False if there is nothing more to be heard, ever."""
        if self._link is None:
            return False
        if not select.select([self._link], [], [], seconds)[0]:
            return self._pid != 0
        try:
            data = self._link.recv(1 << 16)
        except OSError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.heard.extend(msgspec.json.decode(line, type=Report) for line in lines)
        return bool(data)

    def _told(self, key: str, seconds: float) -> int:
        """What the server says of `key`."""
        end_s = time.monotonic() + seconds
        assert self._server.stdout
        while b"\n" not in self._said:
            if not select.select([self._server.stdout], [], [], max(0.0, end_s - time.monotonic()))[0]:
                raise Broken(f"no {key} within {seconds:g} s")
            data = os.read(self._server.stdout.fileno(), 4096)
            if not data:
                raise Broken("the process that forks windows has ended")
            self._said += data
        line, self._said = self._said.split(b"\n", 1)
        found: dict[str, int] = msgspec.json.decode(line)
        if key not in found:
            raise Broken(f"the window ended by itself ({found})")
        return found[key]

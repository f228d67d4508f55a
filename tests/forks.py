"""On Linux, workers that tests start are forks of a process that has imported a worker's libraries.

Nearly all CPU time of a worker's start is its imports. After `install()`, `subprocess.Popen` has a second
process fork where the command is that of a worker, or of the fake one of tests of the window. The fork is a
child of this process, with the pipes, environment and folder that `Popen` was given, and runs the worker's
`main`. Within `executing()`, and with any other command, `Popen` starts a program as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from core.worker.client import worker_command

_IMPORTED = (
    "core.engine.engine",
    "mlx_lm.models.llama",
    "transformers.models.auto.tokenization_auto",
)
# The commands that are not executed, by the module whose `main` a fork runs.
_COMMANDS = {
    "core.worker.main": worker_command(),
    "tests.app.fake_worker": [sys.executable, "-m", "tests.app.fake_worker"],
}
_SET_CHILD_SUBREAPER = 36  # of prctl
_MESSAGE_BYTES = 1 << 20


class _Forks:
    """The process that forks, started at the first worker."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._lock = threading.Lock()
        self.executes = False

    def fork(self, module: str, environment: Mapping[str, str], folder: str, descriptors: list[int]) -> int:
        """Returns the id of a child that runs `module` with `descriptors` as its files 0, 1 and 2."""
        with self._lock:
            line = self._line = self._line or self._start(environment)
            # A process whose parent has ended becomes a child of the nearest ancestor that asks for it.
            prctl = ctypes.CDLL(None, use_errno=True).prctl
            prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                message = json.dumps([module, dict(environment), folder]).encode("ascii")
                socket.send_fds(line, [message], descriptors)
                pid = int(line.recv(_MESSAGE_BYTES))
            finally:
                prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
            if not pid:
                raise OSError("the process of tests/forks.py could not fork a worker")
            return pid

    def _start(self, environment: Mapping[str, str]) -> socket.socket:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for each in (here, there):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MESSAGE_BYTES)
        root = Path(__file__).parents[1]
        command = [sys.executable, "-P", "-m", "tests.forks", str(there.fileno())]
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**environment, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            pass_fds=[there.fileno()],
        )
        there.close()

        def end() -> None:
            here.close()
            process.wait()

        atexit.register(end)
        return here


_forks = _Forks()


def install() -> None:
    """Make `subprocess.Popen` fork workers. Does nothing except on Linux."""
    if sys.platform != "linux":
        return
    executes: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    if executes.__module__ == __name__:
        return

    # As the first parameters of `_execute_child`.
    def start(popen: Any, args: Any, *rest: Any) -> None:
        _, preexec, _, _, cwd, env, _, _, _, *descriptors = rest[:15]
        files = descriptors[0], descriptors[3], descriptors[5]
        module = next((name for name, command in _COMMANDS.items() if list(args) == command), "")
        if _forks.executes or preexec or env is None or -1 in files or not module:
            executes(popen, args, *rest)
            return
        popen.pid = _forks.fork(module, env, cwd or os.getcwd(), list(files))
        popen._child_created = True
        for its, ours in ((files[0], descriptors[1]), (files[1], descriptors[2]), (files[2], descriptors[4])):
            if ours != -1:  # a pipe that `Popen` made
                os.close(its)
        popen._closed_child_pipe_fds = True

    subprocess.Popen._execute_child = start  # type: ignore[attr-defined]


@contextlib.contextmanager
def executing() -> Iterator[None]:
    """Workers that are started within it are programs, as in the product."""
    _forks.executes = True
    try:
        yield
    finally:
        _forks.executes = False


def _serve(line: socket.socket) -> None:
    """Fork for each message until the other side closes its end."""
    from core.models.runtime import prepare

    prepare()
    for name in (*_IMPORTED, *_COMMANDS):
        importlib.import_module(name)
    if len(threads := os.listdir("/proc/self/task")) > 1:
        raise RuntimeError(f"{len(threads)} threads are running; forks need a process of one.")
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, _MESSAGE_BYTES, 3)
        if not message:
            return
        told, tell = os.pipe()
        # Its parent ends at once, so it becomes a child of the tests' process.
        if not (between := os.fork()):
            if pid := os.fork():
                os.write(tell, b"%d" % pid)
                os._exit(0)
            _become_worker(*json.loads(message), descriptors)
        os.waitpid(between, 0)
        os.close(tell)  # else the next line waits forever for a child that could not fork
        line.send(os.read(told, 32) or b"0")
        for each in (told, *descriptors):
            os.close(each)


def _become_worker(
    module: str, environment: Mapping[str, str], folder: str, descriptors: list[int]
) -> NoReturn:
    """The rest of a fork's life."""
    status = 1
    try:
        for target, each in enumerate(descriptors):
            os.dup2(each, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from huggingface_hub import constants

        importlib.reload(constants)  # read from the environment on import
        status = sys.modules[module].main() or 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:  # the process ends here, and says why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))

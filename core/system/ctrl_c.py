"""Ctrl-C for work that may end at any moment: one press ends the process, whatever it is doing.

Python turns Ctrl-C into a KeyboardInterrupt in whatever the main thread runs next. There it can be
lost, in a destructor ("Exception ignored in") or in a library's `except:`, and it waits for calls
that no signal ends, like asking for a host's address. So a thread listens instead: the interpreter
writes each signal's number to a pipe at once (`signal.set_wakeup_fd`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130  # 128 and SIGINT's number, as shells count


@contextmanager
def ending_at_ctrl_c(say: Callable[[], None]) -> Iterator[None]:
    """Until the block ends, Ctrl-C calls `say` in a thread of its own and ends the process with `STOPPED`.

    Nothing else is tidied up. Main thread only. Where Ctrl-C is ignored (`nohup … &`) it stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    hears, told = os.pipe()
    os.set_blocking(told, False)
    listener = threading.Thread(target=_listen, args=(hears, say), name="ctrl-c", daemon=True)
    listener.start()
    descriptor = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _leave_it)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(descriptor)
        os.close(told)
        listener.join()
        os.close(hears)


def _leave_it(number: int, frame: FrameType | None) -> None:
    """A handler that Python knows: only then does it write to the pipe."""


def _listen(hears: int, say: Callable[[], None]) -> None:
    while heard := os.read(hears, 1):
        if heard[0] == signal.SIGINT:
            try:
                say()
            finally:
                os._exit(STOPPED)

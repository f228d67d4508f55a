"""Draftlight in its bundle: the same command line as `draftlight`, whatever the executable is.

The packager's executable embeds Python, and whoever starts another process finds that executable
where an interpreter is expected. So first of all `sys.executable` is made certain to be it, and
`sys.frozen` tells the worker's client to start it with `--worker`. The one helper process that
libraries start on their own (multiprocessing's resource tracker, through tqdm's lock) asks for
`python -c …`; that call is answered here, or it would be taken for wrong usage of Draftlight.

A failure ends with its traceback on stderr and status 1, never in the executable's own dialogue:
nobody would be there to close the worker's.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import traceback
from collections.abc import Sequence

_PATH_BYTES = 4096
_TRACKER = re.compile(r"from multiprocessing\.resource_tracker import main;\s?main\((\d+)\)")


def own_executable() -> str:
    """The path of this process's executable, from the system itself."""
    if sys.platform == "darwin":
        buffer = ctypes.create_string_buffer(_PATH_BYTES)
        size = ctypes.c_uint32(_PATH_BYTES)
        if ctypes.CDLL(None)._NSGetExecutablePath(buffer, ctypes.byref(size)) == 0:
            return os.path.realpath(os.fsdecode(buffer.value))
        return sys.executable
    return os.path.realpath("/proc/self/exe")


def tracker_pipe(arguments: Sequence[str]) -> int | None:
    """The file descriptor that a call of multiprocessing's resource tracker names; else None."""
    if len(arguments) < 2 or arguments[-2] != "-c":
        return None
    found = _TRACKER.fullmatch(arguments[-1])
    return int(found.group(1)) if found else None


def main() -> int:
    """Exit status, as `draftlight` gives it."""
    sys.executable = own_executable()
    sys.frozen = True  # type: ignore[attr-defined]
    pipe = tracker_pipe(sys.argv[1:])
    if pipe is not None:
        from multiprocessing.resource_tracker import main as track

        track(pipe)
        return 0
    from core.cli import main as draftlight

    return draftlight()


def run() -> int:
    """`main()`, with what it raises on stderr."""
    try:
        return main()
    except SystemExit as ending:
        code = ending.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        return code if isinstance(code, int) else int(code is not None)
    except BaseException:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(run())

"""ForkingLoop: an event loop whose children are forks of this process, which has imported all of a worker.

Nearly all of a worker's start is the import of its libraries. A fork has them, and is otherwise what the
client starts: its child, with its own pipes, environment and folder, running the worker's `main`. Linux
only, and only from a process with a single thread in which MLX has computed nothing: `in_fresh_process`
gives a campaign such a process, and `alone` does in a fork what would compute.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from tests.attack.campaign import Outcome

_Run = Callable[[int, Sequence[int]], Iterator[Outcome]]
_CASE_LIMIT_S = 300.0
_IMPORTED = (
    "core.worker.main",
    "core.engine.engine",
    "mlx_lm.models.llama",
    "transformers.models.auto.tokenization_auto",
    "tests.core.toy",
)


class ForkingLoop(asyncio.SelectorEventLoop):
    """Starts children by the command that it is given while `cold`; otherwise forks them."""

    cold = False

    async def subprocess_exec(self, protocol_factory: Any, *command: Any, **options: Any) -> Any:
        """What asyncio starts children by."""
        if not self.cold:
            environment = options["env"]
            options["preexec_fn"] = lambda: _become_worker(environment)
        return await super().subprocess_exec(protocol_factory, *command, **options)


def import_worker() -> None:
    """Import what a worker has imported by its first answer. Raises `RuntimeError` if that began a thread."""
    from core.models.runtime import prepare

    prepare()
    for name in _IMPORTED:
        importlib.import_module(name)
    if len(threads := os.listdir("/proc/self/task")) > 1:
        raise RuntimeError(f"{len(threads)} threads are running; forks need a process of one.")


def alone(work: Callable[[], None]) -> None:
    """Do `work` in a fork of this process. Raises `RuntimeError` if it fails."""
    pid = os.fork()
    if not pid:
        _leave(work)
    if status := os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"{work} ended with {os.waitstatus_to_exitcode(status)}")


def in_fresh_process(run: _Run, seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    """The outcomes of `run`, carried out by a new process. A case that takes too long is its last."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(there, run, seed, list(cases)), daemon=True)
    process.start()
    there.close()
    try:
        for case in cases:
            if not here.poll(_CASE_LIMIT_S):
                yield Outcome(case, f"no outcome within {_CASE_LIMIT_S:g} s")
                return
            try:
                yield here.recv()
            except EOFError:
                process.join()
                yield Outcome(case, f"the campaign's process ended with {process.exitcode}")
                return
        process.join(_CASE_LIMIT_S)
    finally:
        process.kill()
        process.join()


def _tell(there: Connection, run: _Run, seed: int, cases: Sequence[int]) -> None:
    # OpenBLAS begins its threads when it is loaded.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for outcome in run(seed, cases):
        there.send(outcome)


def _become_worker(environment: Mapping[str, str]) -> None:
    """The rest of a fork's life. It never executes anything: closing its files tells that it started."""
    # Nothing of the parent's may be collected, which would close files by numbers that are now ours.
    gc.freeze()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    from core.worker.main import main

    _leave(main)


def _leave(work: Callable[[], int | None]) -> NoReturn:
    """Do `work`; what it returns is the exit status."""
    status = 1
    try:
        status = work() or 0
    except BaseException:  # the process ends here, and says why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

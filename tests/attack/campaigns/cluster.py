"""Something goes wrong with one of two machines at a random moment of an answer, or before it.

SIGKILL or SIGSTOP for the follower at work, an exception in it, its line cut, the leader killed; another
version there, or a damaged file of the model. Then: the leader must say which machine it was and be gone
within its deadlines, the follower's process must be gone, too, and `draftlight follow` must take the next
leader. What can be seen beforehand must be refused, and the worker must answer by itself afterwards.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from core.events import ClusterEnded, Failed, Finished, Hello, LoadModel, ModelLoaded, Token
from core.events.codec import WorkerExited
from core.settings.cluster import Cluster, Machine
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.variables import variables
from tests.attack.support.worker_talk import Broken, WorkerTalk, ask, talking
from tests.core.cluster.machines import Follow, follower, use_all_cores, with_new_ports

_FAULTS = ("SIGKILL", "SIGSTOP", "exception", "line cut", "leader killed", "version", "damaged file")
_DEADLINE_S = 3.0
# The deadline of an operation, or ten silent seconds where none was under way; and time to say it.
_LEADER_S = 14.0
# `draftlight follow` kills what has been silent for fifteen seconds.
_FOLLOWER_S = 30.0
_MACHINE = "second"


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    use_all_cores()
    with ExitStack() as stack:
        stack.enter_context(variables(OPENBLAS_NUM_THREADS="1"))
        talk, folder = stack.enter_context(talking())
        from core.system.files import key_of

        secret = folder / "secret"
        key_of(secret)
        follow = stack.enter_context(follower(secret))
        for case in cases:
            chance = case_random("cluster", seed, case)
            fault = _FAULTS[case % len(_FAULTS)]
            found, peaks = "", {}
            try:
                peaks = _try(talk, folder, follow, secret, fault, chance)
            except Broken as broken:
                found = f"{fault}: {broken}"
            with suppress(Exception):
                talk.client.kill()
                talk.stop()
            yield Outcome(case, found, {fault.replace(" ", "_"): 1.0}, peaks)


def _try(
    talk: WorkerTalk, folder: Path, follow: Follow, secret: Path, fault: str, chance: random.Random
) -> dict[str, float]:
    model = folder / "toy"
    with ExitStack() as stack:
        if fault in ("exception", "version"):
            follow = stack.enter_context(_changed_follower(secret, fault, chance))
        machine = Machine(_MACHINE, follow.address)
        if fault == "damaged file":
            machine = replace(machine, model=str(stack.enter_context(_damaged(model, chance))))
        line = None
        if fault == "line cut":
            line = stack.enter_context(_Line(follow.address))
            machine = replace(machine, address=line.address)
        cluster = with_new_ports(Cluster((machine,), str(secret), backend="ring", deadline_s=_DEADLINE_S))
        talk.start()
        talk.until(Hello)
        talk.send(LoadModel(str(model), cluster))
        if fault in ("version", "damaged file"):
            return _refused(talk, model, fault)
        heard = talk.until((ModelLoaded, ClusterEnded))
        if isinstance(heard, ModelLoaded):
            # An exception reaches the follower's main thread when it does something: it is kept at it.
            for number in range(20 if fault == "exception" else 1):
                question = f"Tell me of {number}."
                talk.send(ask(f"a{number}", question, sampling__max_tokens=450, sampling__temperature=0.0))
            talk.until((Token, ClusterEnded))
            if fault != "exception":
                talk.pause(chance.uniform(0.0, 0.6))
        elif fault != "exception":
            raise Broken(f"it ended while it loaded: {heard.message}")
        return _faulted(talk, follow, fault, line, chance)


def _faulted(
    talk: WorkerTalk, follow: Follow, fault: str, line: _Line | None, chance: random.Random
) -> dict[str, float]:
    at_work = follow.at_work
    started = time.monotonic()
    match fault:
        case "SIGKILL" | "SIGSTOP":
            if len(at_work) != 1:
                raise Broken(f"{len(at_work)} processes follow")
            os.kill(at_work[0], getattr(signal, fault))
        case "line cut":
            assert line is not None
            line.cut()
        case "leader killed":
            talk.client.kill()
        case _:
            pass
    talk.until(WorkerExited, _LEADER_S + (10.0 if fault == "exception" else 0.0))
    leader_s = time.monotonic() - started
    if fault != "leader killed":
        ended = [each for each in talk.heard if isinstance(each, ClusterEnded)]
        if [each.machine for each in ended] != [_MACHINE]:
            raise Broken(f"the worker did not name the machine: {ended}")
    if fault == "SIGSTOP" and chance.random() < 0.5:
        with suppress(ProcessLookupError):
            os.kill(at_work[0], signal.SIGCONT)
    until = time.monotonic() + _FOLLOWER_S
    while left := follow.at_work:
        if time.monotonic() > until:
            raise Broken(f"processes are left: {left}")
        time.sleep(0.05)
    return {"leader_gone_after_s": leader_s, "all_gone_after_s": time.monotonic() - started}


def _refused(talk: WorkerTalk, model: Path, fault: str) -> dict[str, float]:
    """What can be seen beforehand: said in words that name both sides, and the worker goes on alone."""
    failed = talk.until(Failed)
    words = {"version": ("0.0.1", "0.32"), "damaged file": ("SHA-256", _MACHINE)}[fault]
    if failed.code != "bad-cluster" or not all(word in failed.message for word in words):
        raise Broken(f"it was refused in other words: {failed.message}")
    talk.send(LoadModel(str(model)))
    talk.until(ModelLoaded)
    talk.send(ask("a", "Tell me.", sampling__max_tokens=8))
    talk.until(Finished)
    return {}


@contextmanager
def _changed_follower(secret: Path, fault: str, chance: random.Random) -> Iterator[Follow]:
    """A `draftlight follow` of whose processes each says another version, or fails after a random while."""
    with tempfile.TemporaryDirectory() as name:
        Path(name, "sitecustomize.py").write_text(_CHANGES[fault])
        with ExitStack() as stack:
            with variables(PYTHONPATH=name, FAILS_AFTER_S=str(chance.uniform(0.8, 4.0))):
                one = stack.enter_context(follower(secret))
            yield one


_CHANGES = {
    "version": """
import importlib.metadata as metadata
own = metadata.version
metadata.version = lambda name: "0.0.1" if name == "mlx-lm" else own(name)
""",
    "exception": """
import ctypes, os, sys, threading
def fail(main=threading.main_thread().ident):
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(ZeroDivisionError))
if "--follower" in sys.orig_argv:
    timer = threading.Timer(float(os.environ["FAILS_AFTER_S"]), fail)
    timer.daemon = True
    timer.start()
""",
}


@contextmanager
def _damaged(model: Path, chance: random.Random) -> Iterator[Path]:
    """A copy of the model with one byte of its weights changed."""
    with tempfile.TemporaryDirectory() as name:
        for file in model.iterdir():
            data = bytearray(file.read_bytes())
            if file.suffix == ".safetensors":
                data[chance.randrange(len(data) // 2, len(data))] ^= 1 << chance.randrange(8)
            Path(name, file.name).write_bytes(data)
        yield Path(name)


class _Line:
    """A line to `address` that can be cut."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._there = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> _Line:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(self._there)
                self._open += [here, there]
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(1 << 16):
                other.sendall(piece)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


CAMPAIGN = Campaign(
    "cluster",
    "whatever happens to one machine of a cluster, all end within their deadlines, the machine is named and"
    " no process is left",
    1,
    len(_FAULTS) * 50,
    _run,
)

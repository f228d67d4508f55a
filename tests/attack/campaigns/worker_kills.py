"""Kills a real worker at a random moment by a random signal, and starts another one in its place.

At the start, while it loads, reads, answers, saves its tables or rests; by SIGKILL, SIGTERM, SIGSEGV,
SIGABRT, or stopped first until the client says that it is silent. Then: the client must have told the
right signal, and the next worker must find no damaged table, load, and answer as the first one did.
The next worker is the one that the next case kills. One in ten is started from nothing, as the window
does; the others are forks of a process that has imported what a worker imports.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from functools import partial

from core.events import (
    Finished,
    Hello,
    ListTables,
    LoadModel,
    ModelLoaded,
    PrefillProgress,
    SaveTables,
    TableList,
    Token,
)
from core.events.codec import WorkerExited, WorkerSilent
from core.system.paths import tables_dir
from core.worker.client import WorkerClient
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.worker_talk import Broken, WorkerTalk, ask, talking

_SIGNALS = ("SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "SIGSTOP")
_MOMENTS = ("start", "load", "read", "answer", "save", "idle")
_SILENCE_S = 0.8
# Until a worker's first event: a worker may be stopped before it. One that starts slowly is then silent
# without being stopped, which nothing here asks about.
_STARTING_S = 3.0
_SAVE_S = 1.0
_COLD_EVERY = 10
_QUESTION = "What does the keeper write down each evening?"


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with talking(partial(WorkerClient, silence_s=_SILENCE_S, starting_s=_STARTING_S)) as (talk, folder):
        model = str(folder / "toy")
        talk.start(cold=False)
        expected = _comes_up(talk, model)
        for case in cases:
            chance = case_random("worker-kills", seed, case)
            # The first cases try each moment once, so that a quick run tries them all.
            moment = _MOMENTS[case] if case < len(_MOMENTS) else chance.choice(_MOMENTS)
            name = chance.choice(_SIGNALS)
            cold = case % _COLD_EVERY == _COLD_EVERY - 1
            fault, peaks = "", {}
            try:
                _be_at(talk, moment, model, chance, cold)
                _kill(talk, name)
                killed_s = time.monotonic()
                talk.start(cold=cold)
                answer = _comes_up(talk, model)
                if answer != expected:
                    fault = "the next worker answers something else"
                if cold:
                    peaks = {"back_after_s": time.monotonic() - killed_s}
            except Broken as broken:
                fault = str(broken)
                # The cases after this one find what a first start finds.
                talk.stop()
                shutil.rmtree(tables_dir(), ignore_errors=True)
                talk.start(cold=cold)
                _comes_up(talk, model)
            if fault:
                fault = f"{name} at {moment}: {fault}"
            counts = dict.fromkeys(("kills", name, f"kills_at_{moment}"), 1.0) | {"cold_starts": float(cold)}
            yield Outcome(case, fault, counts, peaks)


def _comes_up(talk: WorkerTalk, model: str) -> list[int]:
    """The ids that a worker that has just been started answers with. Raises `Broken`."""
    talk.until(Hello)
    talk.send(LoadModel(model), ListTables("t"))
    talk.until(ModelLoaded)
    tables = talk.until(TableList)
    if tables.set_aside:
        raise Broken(f"tables are damaged: {tables.set_aside}")
    # Not learned from: what is expected is one thing, however often it was asked.
    talk.send(
        ask("check", _QUESTION, drafting__drafter="ngram-mod", sampling__max_tokens=12, tables__learn=False)
    )
    talk.until(Finished)
    return [heard.id for heard in talk.heard if isinstance(heard, Token) and heard.request == "check"]


def _be_at(talk: WorkerTalk, moment: str, model: str, chance: random.Random, cold: bool) -> None:
    """Bring the worker to `moment`, somewhere within it."""
    text = "".join(chance.choice("abcdefgh ") for _ in range(chance.choice((20, 200, 400))))
    asked = ask("victim", text, drafting__drafter="ngram-mod", sampling__max_tokens=60)
    match moment:
        case "start":
            talk.client.kill()
            talk.until(WorkerExited)
            talk.start(cold=cold)
            talk.pause(chance.uniform(0.0, 1.6 if cold else 0.1))
        case "load":
            talk.send(LoadModel(model))
            talk.pause(chance.uniform(0.0, 0.15))
        case "read":
            talk.send(asked)
            if chance.random() < 0.5:
                talk.until(PrefillProgress)
        case "answer":
            talk.send(asked)
            for _ in range(chance.randint(1, 30)):
                # The toy model may end its answer before; then the worker is killed right after the end.
                if isinstance(talk.until((Token, Finished)), Finished):
                    break
        case "save":
            talk.send(asked)
            talk.until(Finished)
            before = _files()
            talk.send(SaveTables("s"))
            if chance.random() < 0.3:
                talk.pause(chance.uniform(0.0, 0.03))
            else:
                _until_written(before)
                time.sleep(chance.choice((0.0, chance.uniform(0.0, 0.003))))
        case _:
            talk.pause(chance.uniform(0.0, 0.3))


def _files() -> set[tuple[str, int, int]]:
    """Each file of the tables as it is now."""
    found = set()
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(tables_dir()):
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat()
                found.add((entry.name, status.st_size, status.st_mtime_ns))
    return found


def _until_written(before: set[tuple[str, int, int]]) -> None:
    """Until a file is begun, renamed or longer; looked at without a pause, so that the kill is in time."""
    until = time.monotonic() + _SAVE_S
    while _files() == before and time.monotonic() < until:
        pass


def _kill(talk: WorkerTalk, name: str) -> None:
    """Raises `Broken` if the client does not tell it rightly."""
    pid = talk.client.pid
    assert pid is not None
    os.kill(pid, signal.Signals[name])
    expected = name
    if name == "SIGSTOP":
        expected = "SIGKILL"
        talk.until(WorkerSilent, 20)
        talk.client.kill()
    exited = talk.until(WorkerExited, 10)
    if exited.signal_name != expected or exited.expected:
        raise Broken(f"told as {exited.signal_name or exited.returncode}, expected {exited.expected}")


CAMPAIGN = Campaign(
    "worker-kills",
    "The client tells each death with its signal; the next worker finds whole tables and answers the same.",
    len(_MOMENTS),
    1000,
    _run,
)

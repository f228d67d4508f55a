"""Recovery: damaged homes are opened while the process is killed or the disk is full.

A case makes a home of a few chats with up to three backups, and damages it: one letter or one page of the
database or of the newest backup, an empty or missing database, a file cut off under a final name, a backup
with a date in 2031. Then a process opens it, presses the button of the banner, saves, purges, makes a backup
or writes unsaved changes beside it. It is killed at one of its system calls that change files, or the disk is
full from that call on, or until that call, or read-only from that call on. After two more undisturbed starts
every chat that some copy had whole has to be there (with the turns of another copy, if that is newer), the
changes of a run that saved them too, and no bytes of
a chat that it purged. Where the disk is full or read-only, intact chats must be readable all the time.

A case repeats this for one in 24 calls. The cases of a whole run together try a third of the calls of each
scenario, and three runs with seeds that differ modulo 3 try every call.

Every twentieth case is about clocks: daily starts, some with a clock that is months ahead or behind. A
deleted chat must not be erased early, and backups must not stop.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from app.session.chats.conversation import Conversation
from app.store.chat_store import ChatStore
from app.store.clock import MOST_STEP_S
from app.store.copies import Backups
from app.store.faults import UNREADABLE, StoreError
from app.store.library import Library
from app.store.preferences import PreferencesFile
from tests.app.store.chats import chat_of
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.forked_home import Ended, Mode, Step

_SOURCE = Path(__file__).parents[1] / "support" / "failing_calls.c"
_CHATS = 6
_SECRET = "heliotrope"
_PURGED = 5
_PAGE_BYTES = 4096
_DAY_S = 86_400
_WORDS = rb"Question|word1"
_DAMAGE = (
    "none",
    "letter",
    "page",
    "empty",
    "missing",
    "newest backup",
    "both",
    "repaired stump",
    "dated 2031",
)
_DAMAGED = ("letter", "page", "empty", "missing", "newest backup", "both")
_ACTIONS = (
    ("save 7", "load"),
    ("load", "remedy", "save 7"),
    ("remedy", "save 7"),
    ("save 7", "backup", "save 8"),
    (f"purge {_PURGED}", "save 7"),
    ("remedy", f"purge {_PURGED}", "backup"),
    ("prefer one", "save 7", "prefer two"),
    ("save 7", "beside", "save 8"),
)
_MODES: tuple[Mode, ...] = ("kill", "full-from", "full-until", "read-only-from")
_SCENARIOS = [(actions, mode) for actions in _ACTIONS for mode in _MODES]
_RUNS, _CASES_A_RUN = 3, 8  # that try all calls of a scenario, and cases of a scenario in one of them
_PARTS = _RUNS * _CASES_A_RUN
_CLOCKS_EVERY = 20


class _Calls:
    """The process that forks one child a step."""

    def __init__(self, folder: Path) -> None:
        library = folder / "failing_calls.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.support.forked_home", str(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": str(library)},
        )

    def run(self, step: Step) -> Ended:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(msgspec.json.encode(step) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Ended)

    def close(self) -> None:
        self._process.communicate()


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="draftlight-attack-") as name:
        root = Path(name)
        calls = _Calls(root)
        try:
            for case in cases:
                dice, home = case_random("recovery", seed, case), root / f"case{case}"
                try:
                    if case % _CLOCKS_EVERY == _CLOCKS_EVERY - 1:
                        yield _clocks(calls, home, case, dice)
                    else:
                        yield _case(calls, home, case, seed, dice)
                except Exception as error:  # whatever it is, a person would see it
                    yield Outcome(case, f"{type(error).__name__}: {error}")
                shutil.rmtree(home, ignore_errors=True)
                shutil.rmtree(home.with_name(f"{home.name}-trial"), ignore_errors=True)
        finally:
            calls.close()


def _case(calls: _Calls, home: Path, case: int, seed: int, dice: random.Random) -> Outcome:
    """Tries every `_PARTS`th call of one scenario; the next cases of the scenario try others."""
    number = case - case // _CLOCKS_EVERY
    actions, mode = _SCENARIOS[number % len(_SCENARIOS)]
    first = number // len(_SCENARIOS) % _CASES_A_RUN * _RUNS + seed % _RUNS
    damage = dice.choice(_DAMAGED if "remedy" in actions else _DAMAGE)
    _make(home, dice)
    _damage(home, damage, dice)
    expected = _whole(home)
    trial = home.with_name(f"{home.name}-trial")
    shutil.copytree(home, trial)
    count = calls.run(Step(str(trial), actions)).calls
    counts = {mode: 0.0}
    for at in range(first, count + 1, _PARTS):
        shutil.rmtree(trial)
        shutil.copytree(home, trial)
        counts[mode] += 1
        told = f"{damage}, {' · '.join(actions)}, {mode} at call {at} of {count}"
        ended = calls.run(Step(str(trial), actions, mode, at))
        fault = ended.error
        if mode != "kill" and damage in ("none", "dated 2031") and not expected.keys() <= set(ended.read):
            fault = fault or "chats could not be read"
        if not fault:
            after = calls.run(Step(str(trial), ("load", "remedy")))
            fault = after.error or ("" if after.saved else "nothing can be saved at the next start")
        if fault := fault or _check(trial, expected, actions, ended):
            return Outcome(case, f"{told}: {fault.strip().splitlines()[-1]}", counts)
    return Outcome(case, "", counts)


def _check(home: Path, expected: dict[str, list[Conversation]], actions: Sequence[str], ended: Ended) -> str:
    purges, done = f"purge {_PURGED}" in actions, ended.saved and not ended.killed
    library = Library(home)
    try:
        found = {}
        for each in library.summaries():
            with contextlib.suppress(StoreError):  # no copy has it whole
                found[each.id] = library.load(each.id)
        for chat_id, states in expected.items():
            if chat_id == f"c{_PURGED}" and purges:
                continue
            if chat_id not in found:
                return f"{chat_id} is lost; {library.problem}"
            if found[chat_id] not in states and not _is_joined(found[chat_id], states):
                return f"{chat_id} is changed"
        for action in actions:
            name, _, number = action.partition(" ")
            if name == "save" and done and found.get(f"c{number}") != chat_of(int(number), 3, 60):
                return f"c{number} was saved and is not there"
        if done and purges and f"c{_PURGED}" in found:
            return "a purged chat is there again"
    finally:
        library.close()
    if done and "prefer two" in actions and PreferencesFile(home).now.model != "two":
        return "a setting was saved and is not there"
    left = [path.name for path in home.rglob("*") if path.is_file() and _SECRET.encode() in path.read_bytes()]
    if done and purges and left:
        return f"text of a purged chat is in {', '.join(left)}"
    return ""


def _is_joined(chat: Conversation, states: Sequence[Conversation]) -> bool:
    """Whether each turn that some copy has whole is as in one of the states in which it was saved."""
    known = [*states, chat_of(int(chat.id.removeprefix("c")), 3, 60)]
    return len(chat.turns) >= min(len(state.turns) for state in states) and all(
        any(state.turns[place : place + 1] == (turn,) for state in known)
        for place, turn in enumerate(chat.turns[: min(len(state.turns) for state in states)])
    )


def _make(home: Path, dice: random.Random) -> None:
    """A home with backups of different moments; its last run may have ended without closing."""
    backups = Backups(home / "chats.db")
    library = Library(home)
    for number in range(_CHATS):
        library.save(chat_of(number, 2, 40, text=f"{_SECRET} {number}" * 20 if number == _PURGED else ""))
    library.flush()
    for number in range(dice.randrange(4)):
        library.save(chat_of(number, 3, 60))
        library.flush()
        backups.make()
    if dice.random() < 0.3:
        library.save(chat_of(3, 3, 60))
        library.flush()
        crashed = shutil.copytree(home, home.with_name(f"{home.name}-crashed"))
        library.close()
        shutil.rmtree(home)
        crashed.rename(home)
    else:
        library.close()
    (home / "preferences.json").write_bytes(dice.choice((b"{}", b"{", b"")))


def _damage(home: Path, kind: str, dice: random.Random) -> None:
    database, backups = home / "chats.db", Backups(home / "chats.db").paths()
    log = database.with_name("chats.db-wal")
    if kind in ("letter", "both"):
        _change(database, dice, page=False)
    if kind == "page":
        _change(database, dice, page=True)
    if kind in ("newest backup", "both") and backups:
        _change(backups[0], dice, page=dice.random() < 0.5)
    if kind in ("empty", "missing", "newest backup"):
        log.unlink(missing_ok=True)
        database.unlink()
        if kind == "empty":
            database.write_bytes(b"")
    if kind == "repaired stump":
        whole = database.read_bytes()
        stump = dice.choice((whole[: dice.randrange(len(whole))], b""))
        (home / "chats-repaired.db").write_bytes(stump)
    if kind == "dated 2031" and backups:
        os.utime(backups[0], (1_924_992_000, 1_924_992_000))


def _change(path: Path, dice: random.Random, *, page: bool) -> None:
    data = bytearray(path.read_bytes())
    if page and len(data) > _PAGE_BYTES:
        begin = dice.randrange(1, len(data) // _PAGE_BYTES) * _PAGE_BYTES
        data[begin : begin + _PAGE_BYTES] = dice.randbytes(_PAGE_BYTES)
    else:
        places = [found.start() for found in re.finditer(_WORDS, data)]
        data[dice.choice(places or [len(data) // 2])] ^= 1
    path.write_bytes(data)


def _whole(home: Path) -> dict[str, list[Conversation]]:
    """Every state of each chat that the database or a backup has whole, read from copies of them."""
    found: dict[str, list[Conversation]] = {}
    with tempfile.TemporaryDirectory() as name:
        copy = shutil.copytree(home, Path(name) / "home")
        for path in (copy / "chats.db", *Backups(copy / "chats.db").paths()):
            try:
                store = ChatStore(path, read_only=True)
            except (StoreError, *UNREADABLE):
                continue
            with store:
                for chat_id in store.ids("chats"):
                    with contextlib.suppress(KeyError, *UNREADABLE):
                        found.setdefault(chat_id, []).append(store.load(chat_id))
    return {chat_id: states for chat_id, states in found.items() if states}


# ---- clocks


def _clocks(calls: _Calls, home: Path, case: int, dice: random.Random) -> Outcome:
    """A month and a half of daily starts, some with another clock."""
    deleted, jumps, last_backup, erased = dice.randrange(_CHATS), 0, 0, -1
    _make(home, random.Random(case))
    backups = Backups(home / "chats.db")
    for day in range(1, 50):
        jumped = jumps < 3 and day > 1 and dice.random() < 0.1
        ahead_s = day * _DAY_S
        if jumped:
            ahead_s += dice.choice((60, 2000, -60, -900)) * _DAY_S
            jumps += 1
        actions = [f"save {20 + day % 3}", "backup-if-due"]
        if day == 1:
            actions.insert(0, f"delete {deleted}")
        before = {path.name for path in backups.paths()}
        ended = calls.run(Step(str(home), tuple(actions), ahead_s=ahead_s))
        if ended.error or not ended.saved:
            return Outcome(case, f"day {day}: {ended.error or 'not saved'}")
        if {path.name for path in backups.paths()} != before:
            last_backup = day
        elif not jumped and day - last_backup > 2:
            return Outcome(case, f"no backup from day {last_backup} to {day}")
        with ChatStore(home / "chats.db", read_only=True) as store:
            there = f"c{deleted}" in store.ids("chats")
        if not there and erased < 0:
            erased = day
            earliest = 31 - jumps * MOST_STEP_S / _DAY_S
            if day < earliest:
                return Outcome(case, f"a deleted chat was erased after {day - 1} days, with {jumps} jumps")
    if erased < 0:
        return Outcome(case, "a deleted chat was not erased in 49 days")
    return Outcome(case, "", {"clocks": 1.0, "jumps": float(jumps)})


CAMPAIGN = Campaign(
    "recovery",
    "a process that is killed at any system call, or meets a full or read-only disk, while it opens, repairs,"
    " restores, backs up or purges damaged homes loses no chat that a copy has whole; no jump of the clock"
    " erases any",
    4,
    269,
    _run,
)

"""Documents: hostile and damaged files are attached to the window's own composer.

Each file (`hostile_documents`) has an odd name or ending, now and then changes or vanishes while it is
read, is no file at all, is taken back, or has its reader killed, stopped or aborted. It must become
text or be refused in words, within the limits of time and memory, while the window goes on. Some have
little memory for much text, on a system that bounds it or, as macOS, does not; and some readers lose
the one that started them, and have to end by themselves.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.hostile_documents import MAKERS, slow_pdf, wide_text

_ROOT = Path(__file__).resolve().parents[3]
# The window's own limits, but for the time: of 2,000 files none may take minutes.
_SILENCE_S, _WHOLE_S = 4.0, 6.0
# A machine that does something else beside this is slower than that.
_SLACK_S = 6.0
# Of the window's own work; what else the machine does is not counted.
_STANDS_STILL_S = 1.0
_HANGS_S = 60.0
# What the reader has beside what it takes: to say that memory ran out.
_SPARE_BYTES = 64 * 1024 * 1024
# Of what is wide the text alone takes as much; between two looks at it a reader without bounds gets it all.
_LITTLE_BYTES = 128 * 1000 * 1000
_BETWEEN_LOOKS_BYTES = 128 * 1024 * 1024
# As on macOS: nothing is done when memory is to be bounded.
_UNBOUNDED = """import resource, sys
bound = resource.setrlimit
resource.setrlimit = lambda what, to: None if what == resource.RLIMIT_DATA else bound(what, to)
sys.path.insert(0, {root!r})
from core.documents.reading import main
raise SystemExit(main(sys.argv[1:]))
"""
_ENDS_ALONE_S = 3.0
# A reason of one word is an error's name.
_INTERNALS = re.compile(
    r"Traceback|cannot be read: \w+(\.\w+)*\.$|\b[A-Z]\w*(Error|Exception)\b|\bNone\b|0x[0-9a-f]{6}"
)
_NAMES = (
    "notes",
    "-rf",
    "a b",
    "ü\u0308",
    "🚢",
    "\u202egnp",
    "a\nb",
    "$(id)",
    "'\"`",
    "CON",
    "x" * 240,
    " ",
    "...",
)
_ENDINGS = (
    *(".txt", ".pdf", ".docx", ".html", ".md", ".csv", ".PDF", "", ".tar.gz", ".xhtml", ".png"),
    *(".rtf", ".eml", ".srt", ".log", ".ipynb"),
)
_NO_FILES = (
    "pipe",
    "folder",
    "socket",
    "missing",
    "loop",
    "dangling",
    "/dev/zero",
    "/dev/null",
    "/proc/self/mem",
)
_CHANGES = ("vanish", "truncate", "grow", "replace", "pipe")
_ENDS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP, signal.SIGABRT)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    """In the window's own process: one composer for all cases."""
    with tempfile.TemporaryDirectory(prefix="draftlight-documents-") as folder, _Raised() as raised:
        bench = _Bench(raised)
        for case in cases:
            place = Path(folder) / str(case)
            place.mkdir()
            # A window that never comes back takes the process with it; the runner tells that.
            faulthandler.dump_traceback_later(_HANGS_S, exit=True)
            try:
                yield bench.attack(case, case_random("documents", seed, case), place)
            finally:
                faulthandler.cancel_dump_traceback_later()
                shutil.rmtree(place, ignore_errors=True)
        bench.close()


class _Raised:
    """What was raised where nobody could take it: in a slot, on a thread."""

    def __init__(self) -> None:
        self._heard: list[str] = []

    def __enter__(self) -> _Raised:
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = lambda kind, error, trace: self._heard.append(f"{kind.__name__}: {error}")
        threading.excepthook = lambda told: self._heard.append(f"{told.exc_type.__name__}: {told.exc_value}")
        return self

    def __exit__(self, *ending: object) -> None:
        sys.excepthook, threading.excepthook = self._before

    def taken(self) -> list[str]:
        """Since the last time."""
        heard, self._heard = self._heard, []
        return heard


class _Bench:
    def __init__(self, raised: _Raised) -> None:
        from PySide6.QtWidgets import QApplication

        from app.chat.composer import Composer
        from core.documents.limits import Limits

        self._application = QApplication.instance() or QApplication([])
        self._raised = raised
        self._limits = Limits(silence_s=_SILENCE_S, whole_s=_WHOLE_S)
        self._refused: list[object] = []
        self._composer = Composer()
        self._composer.resize(752, 200)
        self._composer.show()
        self._composer.attach_failed.connect(self._refused.append)
        self._intake = self._composer._intake
        self._intake.reader.limits = self._limits
        self._longest_s = 0.0

    def close(self) -> None:
        self._composer.close()
        self._composer.deleteLater()
        self._turn()

    def attack(self, case: int, dice: random.Random, place: Path) -> Outcome:
        """One file."""
        special = dice.random()
        if special < 0.02:
            return self._abandon(case, dice, place)
        if special < 0.06:
            return self._starve(case, dice, place)
        path, said, kind = _made(dice, place)
        change = dice.choice(_CHANGES) if kind != "no file" and dice.random() < 0.08 else ""
        ending = dice.choice(_ENDS) if not change and dice.random() < 0.05 else None
        taken_back = not change and not ending and dice.random() < 0.05
        self._refused.clear()
        self._longest_s = 0.0
        started = time.monotonic()
        self._timed(lambda: self._composer.attach_files([path]))
        if change:
            self._wait(dice.choice((0.0, 0.05, 0.3)))
            _change(change, path)
        elif ending or taken_back:
            self._wait(dice.choice((0.0, 0.03, 0.2, 0.5)))
        beside = self._intake.reader.busy
        pid, peak_bytes = self._watch(ending, taken_back, started)
        seconds = time.monotonic() - started
        found = self._composer.attachments
        fault = self._fault(path, found, taken_back, pid, peak_bytes, seconds)
        whole = not change and not ending and not taken_back and path.suffix.lower() == kind
        if (
            not fault
            and whole
            and said is not None
            and [one.text for one in found] != ([said] if said else [])
        ):
            wanted = "gave another text" if said else "was read"
            fault = f"{wanted}: {_short(found or self._refused)}"
        read = sum(len(one.text) for one in found)
        self._timed(self._composer.clear)
        self._turn()
        counts = {
            "attached": float(bool(found)),
            "refused": float(bool(self._refused)),
            "readers": float(beside),
        }
        peaks = {
            "seconds": seconds,
            "reader_mb": peak_bytes / 1e6,
            "window_still_s": self._longest_s,
            "characters": float(read),
        }
        return Outcome(case, fault and f"{kind or path.suffix} {path.name!r}: {fault}", counts, peaks)

    def _starve(self, case: int, dice: random.Random, place: Path) -> Outcome:
        """A text that takes more memory than its reader may have."""
        path = place / "wide.txt"
        wide_text(dice, path)
        bounded = dice.random() < 0.5
        self._refused.clear()
        self._longest_s = 0.0
        reader, more = self._intake.reader, 0 if bounded else _BETWEEN_LOOKS_BYTES
        reader.limits = self._limits._replace(memory_bytes=_LITTLE_BYTES)
        unbounded = [sys.executable, "-P", "-c", _UNBOUNDED.format(root=str(_ROOT))]
        with contextlib.ExitStack() as put_back:
            put_back.callback(setattr, reader, "limits", self._limits)
            if not bounded:
                put_back.enter_context(patch("core.documents.client.reader_command", lambda: unbounded))
            started = time.monotonic()
            self._timed(lambda: self._composer.attach_files([path]))
            pid, peak_bytes = self._watch(None, False, started)
        seconds = time.monotonic() - started
        found = self._composer.attachments
        fault = self._fault(path, found, False, pid, peak_bytes - more, seconds, _LITTLE_BYTES)
        if not fault and not any("of memory" in str(error) for error in self._refused):
            fault = f"took what memory it wanted: {_short(found or self._refused)}"
        self._timed(self._composer.clear)
        self._turn()
        how = "bounded" if bounded else "not bounded"
        peaks = {"seconds": seconds, "starved_reader_mb": peak_bytes / 1e6}
        return Outcome(case, fault and f"wide text, memory {how}: {fault}", {"starved": 1.0}, peaks)

    def _abandon(self, case: int, dice: random.Random, place: Path) -> Outcome:
        """The process that started the reader is gone: the system closes the reader's stdin."""
        from core.documents.client import reader_command
        from core.system.children import CHILD_FOLDER

        path = place / "slow.pdf"
        slow_pdf(dice, path)
        bounds = [str(self._limits.memory_bytes), "60", str(self._limits.characters)]
        pipe = subprocess.PIPE
        reader = subprocess.Popen(
            [*reader_command(), str(path), *bounds], stdin=pipe, stdout=pipe, cwd=CHILD_FOLDER
        )
        fault = ""
        with reader:
            self._wait(dice.choice((0.0, 0.3, 0.8)))
            if reader.poll() is not None:
                fault = f"its reader ended with {reader.returncode} before anybody was gone"
            assert reader.stdin
            reader.stdin.close()
            try:
                reader.wait(_ENDS_ALONE_S)
            except subprocess.TimeoutExpired:
                fault = f"its reader outlived who started it by {_ENDS_ALONE_S:.0f} s"
            reader.kill()
        return Outcome(case, fault and f"slow.pdf: {fault}", {"abandoned": 1.0})

    def _watch(
        self, ending: signal.Signals | None, taken_back: bool, started: float
    ) -> tuple[int | None, int]:
        """Until nothing is on its way. The reader's process and the most memory that it was seen to hold."""
        pid, peak_bytes = None, 0
        while self._intake.reader.busy and time.monotonic() < started + _WHOLE_S + _SLACK_S:
            reading = self._intake.reader._current
            pid = (reading.pid if reading else None) or pid
            if pid:
                peak_bytes = max(peak_bytes, _held_bytes(pid))
                if ending:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, ending)
                    ending = None
            if taken_back and self._composer.chips.files:
                self._timed(self._composer.chips.files[0].remove_button.click)
            self._turn()
            time.sleep(0.002)
        thread = self._intake.reader._thread
        if thread:
            thread.join(2.0)
        self._turn()
        return pid, peak_bytes

    def _fault(
        self,
        path: Path,
        found: Sequence[object],
        taken_back: bool,
        pid: int | None,
        peak_bytes: int,
        seconds: float,
        most_bytes: int = 0,
    ) -> str:
        from core.documents.reading import shown_name
        from core.errors import RequestError
        from core.events import Attachment

        if raised := self._raised.taken():
            return f"raised {raised[0][:200]}"
        if self._intake.reader.busy:
            self._composer.clear()
            return f"still being read after {seconds:.1f} s"
        if pid and Path(f"/proc/{pid}").exists():
            return f"its reader, process {pid}, is still there"
        if peak_bytes > (most_bytes or self._limits.memory_bytes) + _SPARE_BYTES:
            return f"its reader held {peak_bytes / 1e6:,.0f} MB"
        if self._longest_s > _STANDS_STILL_S:
            return f"the window stood still for {self._longest_s:.2f} s"
        if len(found) + len(self._refused) != 1 and not (taken_back and not found and not self._refused):
            return f"gave {len(found)} documents and {len(self._refused)} refusals"
        for error in self._refused:
            if not isinstance(error, RequestError):
                return f"was refused by {error!r}"
            if shown_name(path) not in error.message or not error.hint or not error.message.endswith("."):
                return f"was refused in half a sentence: {error.message!r} {error.hint!r}"
            if _INTERNALS.search(error.message.replace(shown_name(path), "")):
                return f"was refused with internals: {error.message!r}"
        for one in found:
            assert isinstance(one, Attachment)
            if len(one.text) > self._limits.characters or not one.text.strip():
                return f"became a text of {len(one.text):,} characters"
            try:
                one.text.encode()
                one.name.encode()
            except UnicodeEncodeError as error:
                return f"cannot be sent: {error}"
            if "root:x:0" in one.text:
                return "brought another file along"
        return ""

    def _wait(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._turn()
            time.sleep(0.002)

    def _turn(self) -> None:
        """One turn of the window's loop."""
        self._timed(self._application.processEvents)

    def _timed(self, step: Callable[[], object]) -> None:
        started = time.thread_time()
        step()
        self._longest_s = max(self._longest_s, time.thread_time() - started)


def _made(dice: random.Random, place: Path) -> tuple[Path, str | None, str]:
    """A path, what an ordinary reading of it gives if that is known, and the ending that is right for it."""
    if dice.random() < 0.06:
        return _no_file(dice.choice(_NO_FILES), place), None, "no file"
    makers, endings, weights = zip(*MAKERS)
    number = dice.choices(range(len(makers)), weights)[0]
    ending = endings[number] if dice.random() < 0.85 else dice.choice(_ENDINGS)
    name = os.fsencode(dice.choice(_NAMES) if dice.random() < 0.3 else "document")
    if dice.random() < 0.02:
        name += b"\xff\xfe"
    path = Path(os.fsdecode(os.fsencode(place) + b"/" + name + (ending or dice.choice(_ENDINGS)).encode()))
    return path, makers[number](dice, path), endings[number]


def _no_file(what: str, place: Path) -> Path:
    path = place / "thing.txt"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(place):
            server.bind(path.name)
    elif what == "loop":
        path.symlink_to(path)
    elif what == "dangling":
        path.symlink_to(place / "nowhere")
    elif what.startswith("/"):
        return Path(what)
    return path


def _change(how: str, path: Path) -> None:
    """While it is read, perhaps."""
    if how == "truncate":
        os.truncate(path, path.stat().st_size // 3)
    elif how == "grow":
        with path.open("ab") as stream:
            stream.write(b"more words\n" * 200_000)
    elif how == "replace":
        other = path.with_name("other")
        other.write_bytes(b"%PDF-1.7\nnothing more")
        other.replace(path)
    else:
        path.unlink()
        if how == "pipe":
            os.mkfifo(path)


def _held_bytes(pid: int) -> int:
    """The most that a process has held; 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _short(value: object) -> str:
    return repr(value)[:300]


CAMPAIGN = Campaign(
    "documents",
    "every file becomes text or is refused in words, within its limits, while the window goes on",
    quick=8,
    full=2000,
    run=_run,
)

"""Scenes: opening, scrolling and streaming in the real window, without a worker.

A frame is a change and everything that follows from it, painted: the scroll bar or the new tokens, the
window's reaction, and a repaint of the whole view before the next frame. A flush paints what it changed, as
the running window does.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QScrollBar

from app.bench.sample_chat import sample_tokens, sample_turns
from app.chat.transcript import Transcript
from app.shell.window import MainWindow
from core.events import Token

TOKENS_A_FLUSH = 4


class Times(Struct, frozen=True):
    """The number of measurements, and their median, 99th percentile and maximum in ms."""

    count: int
    median_ms: float
    p99_ms: float
    longest_ms: float


def times_of(measured_s: Sequence[float]) -> Times:
    """Returns the figures of `measured_s`, seconds each."""
    in_order = sorted(measured_s)
    p99 = in_order[min(len(in_order) - 1, int(len(in_order) * 0.99))]
    ms = [round(1000 * value, 2) for value in (statistics.median(in_order), p99, in_order[-1])]
    return Times(len(in_order), *ms)


class Scenes(Struct, frozen=True):
    """`rss_bytes` is the window process's memory once the chat was scrolled through."""

    messages: int
    tokens: int
    open: Times
    scroll: Times
    jump: Times
    flush: Times
    flush_paragraph: tuple[Times, ...]
    rss_bytes: int


def play(window: MainWindow, turns: int = 100, answer_tokens: int = 580, frames: int = 600) -> Scenes:
    """Plays all scenes in `window`, which is visible. Leaves the chat in it."""
    transcript = window.views.transcript
    window.views.show_first_page(False)
    chat = sample_turns(turns, answer_tokens)
    settle()
    opened = []
    for _ in range(10):
        transcript.clear()
        settle()
        opened.append(timed(lambda: _whole_view(transcript, lambda: transcript.show_turns(chat))))
    settle()
    bar = transcript.verticalScrollBar()
    scrolled = [_frame(transcript, lambda: bar.setValue(bar.value() - 60)) for _ in range(frames)]
    share = [((number * 7919) % 97) / 97 for number in range(40)]
    jumped = [_frame(transcript, partial(_jump, bar, at)) for at in share]
    rss = rss_bytes()
    transcript.scroll_to_end()
    settle()
    flushed = _stream(transcript, "bench-new", sample_tokens(2400, seed=11))
    paragraph = _stream(transcript, "bench-long", sample_tokens(4000, seed=13, paragraph=True))
    quarter = len(paragraph) // 4
    return Scenes(
        2 * turns,
        sum(len(turn.answer.tokens) for turn in chat) + sum(len(t.user.content.split()) for t in chat),
        times_of(opened),
        times_of(scrolled),
        times_of(jumped),
        times_of(flushed),
        tuple(times_of(paragraph[n * quarter : (n + 1) * quarter]) for n in range(4)),
        rss,
    )


def timed(act: Callable[[], object]) -> float:
    """Returns the seconds that `act` takes."""
    started_s = time.perf_counter()
    act()
    return time.perf_counter() - started_s


def settle() -> None:
    """Lets the window finish its idle work, including deferred deletions."""
    for _ in range(200):
        QApplication.processEvents()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()


def rss_bytes() -> int:
    """Returns the resident memory of this process; its maximum where the current value is unknown."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _jump(bar: QScrollBar, share: float) -> None:
    bar.setValue(round(share * bar.maximum()))


def _frame(transcript: Transcript, act: Callable[[], object]) -> float:
    return timed(lambda: _whole_view(transcript, act))


def _whole_view(transcript: Transcript, act: Callable[[], object]) -> None:
    act()
    transcript.viewport().repaint()
    QApplication.processEvents()


def _stream(transcript: Transcript, turn_id: str, tokens: Sequence[Token]) -> list[float]:
    transcript.begin_answer(turn_id, "auto")
    settle()
    took: list[float] = []
    for at in range(0, len(tokens), TOKENS_A_FLUSH):
        part = tokens[at : at + TOKENS_A_FLUSH]

        def flush(part: Sequence[Token] = part) -> None:
            transcript.append_tokens(turn_id, part)
            QApplication.processEvents()

        took.append(timed(flush))
    transcript.finish_answer(turn_id, None)
    settle()
    return took

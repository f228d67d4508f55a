"""Measures of the window: scenes without a worker, its cost during an answer, and the report with budgets.

Scenes: opening, scrolling and streaming in the real window. A frame is a change and everything that follows
from it, painted: the scroll bar or the new tokens, the window's reaction, and a repaint of the whole view
before the next frame. A flush paints only the changed area, as the running window does.

Cost: decode times of one prompt through the window, and directly from the same worker. Both sides of a pair
share the process, the worker, the prompt cache and the drafts (of a drafter without tables), and alternate
in order. In the direct case, no widget gets the worker's events and the window is idle. The compared value is
the decode time that the worker reports; the tokens must be equal. The processor time of the window's process
is measured as well: where the machine's speed drifts by more than the window costs, only this figure is
reliable.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from PySide6.QtCore import QEvent
from PySide6.QtGui import QImage, QPixmapCache
from PySide6.QtWidgets import QApplication, QScrollBar

from app.bench.sample_chat import sample_tokens, sample_turns
from app.chat.pasteboard import as_png
from app.chat.transcript import Transcript
from app.launch.scenario import Deadline, ScenarioFailed, answer_of, ask
from app.session.chats.conversation import Turn
from app.shell.window import MainWindow
from core.events import Finished, Generate, Image, Message, Token
from core.settings import Settings, assign_all
from core.worker.client import CommandError

TOKENS_A_FLUSH = 4
IMAGES = 20


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
    open_images: Times
    scroll_images: Times


def play(window: MainWindow, turns: int = 100, answer_tokens: int = 580, frames: int = 600) -> Scenes:
    """Plays all scenes in `window`, which is visible. Leaves the chat in it."""
    transcript = window.views.transcript
    window.views.show_first_page(False)
    chat = sample_turns(turns, answer_tokens)
    settle()
    opened_images = _open(transcript, _chat_of_images(window), cold=True)
    scrolled_images = _scroll(transcript, frames)
    opened, scrolled = _open(transcript, chat), _scroll(transcript, frames)
    bar = transcript.verticalScrollBar()
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
        times_of(opened_images),
        times_of(scrolled_images),
    )


def _open(transcript: Transcript, chat: Sequence[Turn], *, cold: bool = False) -> list[float]:
    """Opens `chat` ten times; `cold`: with no thumbnail decoded before."""
    opened = []
    for _ in range(10):
        transcript.clear()
        settle()
        if cold:
            QPixmapCache.clear()
        opened.append(timed(lambda: _whole_view(transcript, lambda: transcript.show_turns(chat))))
    settle()
    return opened


def _scroll(transcript: Transcript, frames: int) -> list[float]:
    bar = transcript.verticalScrollBar()
    return [_frame(transcript, lambda: bar.setValue(bar.value() - 60)) for _ in range(frames)]


def _chat_of_images(window: MainWindow) -> tuple[Turn, ...]:
    """Each question has an image of noise, the slowest to decode. They are made on a thread of their own."""
    archive, chance, side_px = window.controller.home.library.images, random.Random(7), 640

    def kept(name: str) -> Image:
        pixels = chance.randbytes(3 * side_px * side_px)
        noise = QImage(pixels, side_px, side_px, 3 * side_px, QImage.Format.Format_RGB888)
        return archive.keep(as_png(noise), name)

    chat = sample_turns(IMAGES, 200)
    with ThreadPoolExecutor(1) as pool:
        making = [pool.submit(kept, f"{turn.id}.png") for turn in chat]
        while not all(each.done() for each in making):
            QApplication.processEvents()
            time.sleep(0.01)
    images = [each.result() for each in making]
    return tuple(replace(turn, user=replace(turn.user, images=(one,))) for turn, one in zip(chat, images))


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


QUESTION = (
    "Write down, one a line and in full words, what a harbour master does before each of ten ferries"
    " sails in fog, and repeat the rule about the outer marker after every line."
)
TIMEOUT_S = 240.0


class CostRun(Struct, frozen=True):
    """One answer's decoding. `window_s`: processor time of the window's process for it."""

    tokens: int
    decode_s: float
    window_s: float = 0.0


class Cost(Struct, frozen=True):
    """`added` holds window ÷ worker − 1 of each pair.

    `busy` is the share of an answer's decode time during which one core works for the window, beyond its idle
    load.
    """

    alone: tuple[CostRun, ...]
    in_window: tuple[CostRun, ...]

    @property
    def added(self) -> tuple[float, ...]:
        return tuple(
            (window.decode_s / window.tokens) / (alone.decode_s / alone.tokens) - 1
            for alone, window in zip(self.alone, self.in_window)
        )

    @property
    def busy(self) -> float:
        return statistics.median(
            (window.window_s - alone.window_s) / window.decode_s
            for alone, window in zip(self.alone, self.in_window)
        )


def bench_settings(tokens: int) -> Settings:
    """Greedy, of a fixed length, and the same every time: nothing is learned from one to the next."""
    return assign_all(
        Settings(),
        [
            ("sampling.max_tokens", tokens),
            ("sampling.temperature", 0.0),
            ("drafting.drafter", "ngram-simple"),
            ("tables.learn", False),
        ],
    )


async def measure(window: MainWindow, pairs: int, tokens: int) -> Cost:
    """Measures `pairs` pairs of runs. Raises `ScenarioFailed`, also if both sides wrote different texts."""
    await Deadline(TIMEOUT_S).until_ready(window)
    # Work that happens once, such as reading the prompt, precedes the measurement.
    await run_in_window(window, min(32, tokens))
    alone: list[CostRun] = []
    shown: list[CostRun] = []
    for number in range(pairs):
        if number % 2:
            shown.append(await run_in_window(window, tokens))
        alone.append(await run_alone(window, tokens))
        if not number % 2:
            shown.append(await run_in_window(window, tokens))
    if len({run.tokens for run in (*alone, *shown)}) > 1:  # greedy runs have one length
        raise ScenarioFailed("The runs differ in length, so they cannot be compared.")
    return Cost(tuple(alone), tuple(shown))


async def run_alone(window: MainWindow, tokens: int) -> CostRun:
    """The question to the window's worker, past the window."""
    asked = Generate("", (Message("user", QUESTION),), bench_settings(tokens))
    begun_s = time.process_time()
    try:
        end = await asyncio.wait_for(window.worker.ask(asked, Finished), TIMEOUT_S)
    except CommandError as error:
        raise ScenarioFailed(error.message) from error
    return CostRun(end.stats.tokens, end.stats.decode_s, time.process_time() - begun_s)


async def run_in_window(window: MainWindow, tokens: int) -> CostRun:
    """The question typed into a new chat of the window."""
    window.controller.chat.start()
    await Deadline(TIMEOUT_S).until_ready(window)
    window.views.inspector.set_settings(bench_settings(tokens))
    # Reported, not polled: polling every few milliseconds would be most of the measured load.
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hear(turn_id: str) -> None:
        if not ended.done():
            ended.set_result(turn_id)

    told = window.controller.answer_finished.connect(hear)
    try:
        begun_s = time.process_time()
        ask(window, QUESTION)
        answer = answer_of(window, await asyncio.wait_for(ended, TIMEOUT_S))
    finally:
        window.controller.answer_finished.disconnect(told)
    if answer is None or answer.finished is None:
        raise ScenarioFailed("The answer did not end in order.")
    stats = answer.finished.stats
    if not stats.decode_s:
        raise ScenarioFailed("The answer is too short to be measured.")
    return CostRun(stats.tokens, stats.decode_s, time.process_time() - begun_s)


OPEN_MS = 400.0
FRAME_MS = 20.0  # 50 frames a second
FLUSH_MS = 8.0
RSS_BYTES = 250_000_000
START_S = 1.0
READY_S = 4.0
ADDED = 0.03


class WindowResults(Struct, frozen=True):
    """The measured figures; None or empty for parts that were not run."""

    starts_s: tuple[float, ...] = ()
    ready_s: tuple[float, ...] = ()
    scenes: Scenes | None = None
    cost: Cost | None = None


def report(results: WindowResults) -> str:
    """A table in Markdown."""
    rows: list[tuple[str, str, str, bool]] = []
    for name, found_s, limit_s in (
        ("Window up", results.starts_s, START_S),
        ("Worker ready", results.ready_s, READY_S),
    ):
        if found_s:
            middle_s = statistics.median(found_s)
            figure = f"{middle_s:.2f} s (longest {max(found_s):.2f})"
            rows.append((name, figure, f"≤ {limit_s:.1f} s", middle_s <= limit_s))
    if scenes := results.scenes:
        chat = f"{scenes.messages} messages, {scenes.tokens:,} tokens"
        rows += [
            (f"Opening a chat of {chat}", _times(scenes.open), "≤ 400 ms", scenes.open.p99_ms <= OPEN_MS),
            ("A frame while scrolling", _times(scenes.scroll), "≤ 20 ms", scenes.scroll.p99_ms <= FRAME_MS),
            ("A jump of the scroll bar", _times(scenes.jump), "", True),
            ("A flush of 4 tokens", _times(scenes.flush), "≤ 8 ms", scenes.flush.p99_ms <= FLUSH_MS),
        ]
        for number, times in enumerate(scenes.flush_paragraph):
            name = f"… into one paragraph, from token {number * 1000:,} on"
            rows.append((name, _times(times), "≤ 8 ms", times.p99_ms <= FLUSH_MS))
        name = f"Opening a chat of {IMAGES} images"
        open_images, scroll_images = scenes.open_images, scenes.scroll_images
        rows += [
            (name, _times(open_images), "≤ 400 ms", open_images.p99_ms <= OPEN_MS),
            (
                "A frame while scrolling it",
                _times(scroll_images),
                "≤ 20 ms",
                scroll_images.p99_ms <= FRAME_MS,
            ),
        ]
        rss = f"{scenes.rss_bytes / 1e6:.0f} MB"
        rows.append(("Memory with that chat", rss, "≤ 250 MB", scenes.rss_bytes <= RSS_BYTES))
    if results.cost:
        added = sorted(results.cost.added)
        middle = statistics.median(added)
        figure = f"{middle:+.1%} ({len(added)} pairs, {added[0]:+.1%} to {added[-1]:+.1%})"
        rows.append(("Decode time the window adds", figure, "≤ 3%", middle <= ADDED))
        rows.append(("One core's time for the window", f"{results.cost.busy:.1%}", "", True))
    lines = ["| Measured | Median, 99th percentile, longest | Budget | |", "|:--|:--|:--|:--|"]
    for what, figure, budget, kept in rows:
        lines.append(f"| {what} | {figure} | {budget} | {_verdict(budget, kept)} |")
    return "\n".join(lines) + "\n"


def _times(times: Times) -> str:
    return f"{times.median_ms:.1f}, {times.p99_ms:.1f}, {times.longest_ms:.1f} ms"


def _verdict(budget: str, kept: bool) -> str:
    return "" if not budget else "kept" if kept else "missed"

"""A chat that one comes back to shows what it would show if one had stayed, whatever its answer is doing.

The worker's events are played into the window. The first time its chat stays open; the second time one leaves
it at a drawn moment, in a drawn way, and comes back at another.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QByteArray, QTimer
from PySide6.QtWidgets import QWidget

from app.chat import reading_state
from app.chat.user_message import MessageChip
from app.gauges import strings
from app.session.turn.intents import Stop
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import (
    Attachment,
    Cancel,
    Command,
    CountTokens,
    Finished,
    Gauges,
    Generate,
    Message,
    Occupancy,
    Passage,
    PositionStat,
    PrefillProgress,
    Queued,
    ReadingMap,
    Stats,
    Token,
)
from tests.app.fake_worker import effective_of
from tests.app.stage import asked, ready, until
from tests.thinned import thinned

TEXT = "\n\n".join(f"# Part {n}\n\n" + "words of it " * 60 for n in range(6))
PASSAGES = tuple(
    Passage(50 * n, 50 * n + 50, n % 3 == 0, n / 40, 0, n * len(TEXT) // 40, (n + 1) * len(TEXT) // 40)
    for n in range(40)
)
WORDS = ["<think>", "\n", " I", " look", " for", " it", ".", "</think>", "\n\n", "It", " is", " **so**", "."]


class Clock:
    """The clock of running answers."""

    s = 1000.0

    def monotonic(self) -> float:
        return self.s


class Worker:
    """Plays a worker that does only what it is told. Commands about answers do not leave the window."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self.asked: Generate | None = None
        self.tokens = 0
        self.counts = 0  # that are pending
        send, ask = window.worker.send, window.worker.ask

        async def note(command: Command, kind: type, *more: Any) -> Any:
            self.counts += isinstance(command, CountTokens)
            try:
                return await ask(command, kind, *more)
            finally:
                self.counts -= isinstance(command, CountTokens)

        def take(command: Command, after: Any = None) -> None:
            if isinstance(command, Generate):
                self.asked, self.tokens = command, 0
            elif not isinstance(command, Cancel):
                send(command, after)

        window.worker.send, window.worker.ask = take, note  # type: ignore[method-assign]

    async def tell(self, event: Any) -> None:
        self.window.controller.handle(event)
        if isinstance(event, Token):
            self.tokens += 1
            running = self.window.controller.link.request
            chats = self.window.controller.chats
            chat = next(each for each in chats.listed() if chats.get(each.id).has(running))
            await until(lambda: len(chats.get(chat.id).turn(running).answer.tokens) == self.tokens)

    @property
    def has_counted(self) -> bool:
        """Whether all that the ring shows is counted, or cannot be counted now."""
        timers = self.window.views.composer.findChildren(QTimer)
        return not self.counts and not any(each.isActive() and each.isSingleShot() for each in timers)

    @property
    def request(self) -> str:
        return self.window.controller.link.request


Step = Callable[[Worker], Any]


def progress(**given: Any) -> Step:
    return lambda worker: PrefillProgress(worker.request, **given)


def token(text: str, position: int) -> Step:
    return lambda worker: Token(
        worker.request, 7, text, ("bonus", "normal")[position % 2], position + 1, position,
        1, 3, 0.1 * position, "n-gram",
    )  # fmt: skip


def gauges(position: int, speed: float) -> Step:
    return lambda worker: Gauges(
        worker.request, speed, 1.2, position, 3, 5, 0.6, 1.6, (PositionStat(5, 3),),
        Occupancy(10 * position, 500), 500_000_000, 700 + position, 8192,
    )  # fmt: skip


def end(worker: Worker) -> Finished:
    assert worker.asked
    reason = "cancelled" if worker.window.controller.link.phase is Phase.STOPPING else "stop"
    tokens = worker.tokens
    stats = Stats(tokens=tokens, prompt_tokens=2000, read_tokens=700, context_used_tokens=700 + tokens)
    stats.tokens_per_s, stats.ttft_s, stats.memory_bytes = 20.0, 1.2, 500_000_000
    return Finished(worker.request, reason, stats, effective_of(worker.asked))


def steps_of(chance: random.Random) -> list[tuple[str, Step]]:
    """An answer from its question to its end: it waits, reads, thinks, writes, or is stopped."""
    steps: list[tuple[str, Step]] = []
    for ahead in range(chance.randrange(3), -1, -1):
        loads = chance.random() < 0.3
        steps.append(("queued", lambda worker, a=ahead, lo=loads: Queued(worker.request, a, loads=lo)))
    sparse = chance.random() < 0.8
    if sparse:
        for n in range(chance.randrange(1, 4)):
            scored = {"phase": "scoring", "scored_tokens": 500 * n, "fraction": 0.02 * n, "time_s": 0.3 * n}
            steps.append(("choosing", progress(done_tokens=0, total_tokens=2000, reused_tokens=0, **scored)))
        steps.append(("choosing", lambda worker: ReadingMap(worker.request, "lexical", 2000, 700, PASSAGES)))
    total, kept = (700, 700) if sparse else (2000, 0)
    for n in range(1, chance.randrange(2, 6)):
        done = total * n // 6
        steps.append(
            ("reading", progress(
                done_tokens=done, total_tokens=total, reused_tokens=0, seconds_left=30.0 - 4 * n,
                kept_tokens=kept, time_s=1.0 + n, fraction=0.1 + n / 7,
            ))
        )  # fmt: skip
    for number, text in enumerate(WORDS):
        steps.append(("writing", token(text, number)))
        if number % 3 == 2:
            steps.append(("writing", gauges(number + 1, 20.0 + 5 * chance.random())))
    if chance.random() < 0.5:  # stopped at some moment
        steps = [*steps[: chance.randrange(1, len(steps))], ("stopping", lambda worker: Stop())]
    return [*steps, ("end", end)]


def image(widget: QWidget) -> QByteArray:
    """The pixels of a widget."""
    shown = widget.grab().toImage()
    return QByteArray(bytes(shown.constBits()))


async def seen(window: MainWindow, worker: Worker) -> dict[str, Any]:
    """What a person sees of the open chat and its answer, in words, and the pixels of what is drawn."""
    tick(window)
    for _ in range(2):  # a count begins shortly after its timer has ended
        await asyncio.sleep(0.02)  # what was posted is done
        await until(lambda: worker.has_counted)
    views, chats = window.views, window.controller.chats
    turn = chats.open.turns[-1:]
    answer = views.transcript.answer(turn[0].id) if turn else None
    card = answer.card if answer else None
    chips = [chip for chip in views.transcript.findChildren(MessageChip) if chip.isVisible()]
    found: dict[str, Any] = {
        "gauges": [
            (each.title, each.isHidden(), each.accessibleDescription()) for each in views.strip.instruments
        ],
        "strip": image(views.strip),
        "facts": card.facts if card else None,
        "card": image(card) if card else None,
        "waiting": answer.waiting.text() if answer else "",
        "text": answer.text if answer else "",
        "figures": answer.footer.stats.text() if answer else "",
        "answer": image(answer) if answer else None,
        "chips": [(chip.note, image(chip)) for chip in chips],
        "composer": (views.composer.state, views.composer.text, views.composer.send_button.toolTip()),
        "ring": views.composer.pill.toolTip(),
        "hint": (views.hint.text(), views.hint.isHidden(), views.legend.toolTip()),
        "header": views.header.accessibleName(),
        "document": (views.document.note_label.text(), image(views.document.gutter)),
    }
    return found


async def question(window: MainWindow) -> None:
    window.controller.chat.start()
    window.views.composer.set_message(Message("user", "What is it?", (Attachment("parts.md", TEXT, 1990),)))
    window.views.composer.submit()
    await until(lambda: window.controller.link.busy)


Leave = tuple[str, Callable[[MainWindow], object], Callable[[MainWindow], object]]


def ways(chat_id: str, other_id: str) -> list[Leave]:
    """How one leaves a chat, and comes back to it."""

    def back(window: MainWindow) -> object:
        return window.controller.chat.select(chat_id)

    return [
        ("another chat", lambda window: window.controller.chat.select(other_id), back),
        ("a new chat", lambda window: window.controller.chat.start(), back),
        (
            "the race",
            lambda window: window.controller.racing.show(),
            lambda window: window.controller.racing.close(),
        ),
        ("hidden", MainWindow.hide, MainWindow.show),
        ("minimised", MainWindow.showMinimized, MainWindow.showNormal),
    ]


@pytest.mark.parametrize("seed", thinned(range(6), keep=[0]))
async def test_what_is_shown_after_coming_back_is_what_staying_shows(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(reading_state, "time", clock)
    window.commands.show_document()
    await asked(window, "write 3")
    memory = window.views.strip.memory
    await until(lambda: memory.accessibleDescription() != strings.NO_FIGURE)
    other_id = window.controller.chats.open.id
    worker, chance = Worker(window), random.Random(seed)
    steps = steps_of(chance)
    passing = [chance.choice((0.3, 0.7, 1.4)) for _ in steps]
    begun_s = clock.s
    await question(window)
    staying = []
    for (_, step), passed_s in zip(steps, passing, strict=True):
        await worker.tell(step(worker))
        clock.s += passed_s
        staying.append(await seen(window, worker))
    await ready(window)

    clock.s = begun_s
    await question(window)
    chat_id = window.controller.chats.open.id
    away: Leave | None = None
    for number, ((phase, step), passed_s) in enumerate(zip(steps, passing, strict=True)):
        if away is None and chance.random() < 0.4:
            away = chance.choice(ways(chat_id, other_id))
            away[1](window)
        await worker.tell(step(worker))
        clock.s += passed_s
        if away is not None and (chance.random() < 0.4 or number == len(steps) - 1):
            way, _, come_back = away
            come_back(window)
            away = None
            compare(staying[number], await seen(window, worker), f"step {number}, {phase}, back from {way}")
        elif away is None:
            compare(staying[number], await seen(window, worker), f"step {number}, {phase}, after coming back")
    assert not window.controller.link.busy


def tick(window: MainWindow) -> None:
    """Show what the clock says now, as the card and the waiting line do within a second."""
    turn = window.controller.chats.open.turns[-1:]
    if turn and (answer := window.views.transcript.answer(turn[0].id)):
        if answer.card:
            answer.card.refresh()
        answer.show_waiting()


def compare(stayed: dict[str, Any], came_back: dict[str, Any], where: str) -> None:
    for name, value in stayed.items():
        assert came_back[name] == value, f"{name} differs, {where}"

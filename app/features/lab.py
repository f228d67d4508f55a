"""The Lab: measures drafters on this machine with `draftlight bench` in a separate process.

LabController runs the process and collects its results; LabWindow shows them in a table with bars. The
process is stopped (SIGSTOP) while the chat is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QObject, QRectF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from app.controls.buttons import Button, on_click
from app.controls.choices import CheckBox
from app.controls.numbers import Spin
from app.controls.record_table import Column, RecordTable, draw_meter
from app.controls.sheets import show_in_folder
from app.controls.text_label import TextLabel
from app.features.side_window import Hairline, SideWindow
from app.gauges.figures import percent, speed
from app.session.turn.link_state import Link, Phase
from app.theme.measures import STRETCH, column_of, row_of
from core.errors import ProtocolError, reason_of
from core.events import Failed
from core.events.bench import (
    ALL_CASES,
    BenchEnded,
    BenchEvent,
    BenchStarted,
    Record,
    decode_bench_event,
    groups,
)
from core.prefill.forecast import duration
from core.settings import Settings
from core.settings.declaration import find
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment

TITLE = "Lab"
SUBTITLE = "Speed of the drafters on this machine, against plain decoding"
RUN = "Run"
STOP = "Stop"
SHOW_FOLDER = "Show Folder"
EACH_PROMPT = "Runs of each prompt"
AT_MOST = "Most tokens"
RESULTS = "Results"
PROMPTS = "Prompts"
DRAFTER = "Drafter"
SPEED = "Speed against plain decoding"
RANGE = "Range"
TOKENS_PER_S = "tok/s"
ACCEPTED = "Accepted"
EQUAL = "Same text"
EMPTY = "Not measured yet"
EMPTY_HINT = "Figures are best on a machine that does nothing else."
STARTING = "Loading the model a second time"
PAUSED = "Paused while the chat is answered"
STOPPING = "Stopping"
KINDS = {"passage": "Passage", "code": "Code", "json_rag": "JSON"}


def progress(done: int, total: int, seconds_left: float) -> str:
    left = f", {duration(seconds_left)} left" if seconds_left else ""
    return f"{done:,} of {total:,} pairs{left}"


def measured(model: str, took_s: float) -> str:
    return f"{model}, measured in {duration(took_s)}"


def ended_with(status: int, last: str) -> str:
    return f"The measurement ended with status {status}. {last}".strip()


_FIRST_DRAFTERS = ("auto", "ngram-simple", "ngram-mod")
_IDLE = (Phase.READY, Phase.NO_MODEL, Phase.DEAD, Phase.CLOSED)
_LINE_LIMIT_BYTES = 16 * 1024 * 1024
_LOG_LINES, _LOG_BYTES = 20, 65_536
_END_TIMEOUT_S = 5.0


class Plan(Struct, frozen=True):
    """The cases, drafters and settings to measure."""

    model: str
    cases: str
    drafters: tuple[str, ...]
    pairs: int
    max_tokens: int
    settings: Settings

    def command(self, out: Path) -> list[str]:
        """The command line, with absolute paths because the process runs in its own folder."""
        words = ["bench", "--json", "--out", str(out.absolute()), "--cases", self.cases]
        words += ["--model", absolute_reference(self.model), "--drafters", ",".join(self.drafters)]
        words += ["--pairs", str(self.pairs), "--max-tokens", str(self.max_tokens)]
        if self.settings.decoding.exactness != Settings().decoding.exactness:
            words += ["--set", f"decoding.exactness={self.settings.decoding.exactness}"]
        if self.settings.draft_model.model:
            words += ["--draft-model", absolute_reference(self.settings.draft_model.model)]
        return child_command(*words)


class Measurement(Struct):
    """A run and its first results. `trouble` is the reason of its failure, as a sentence."""

    model: str = ""
    running: bool = False
    stopping: bool = False
    total: int = 0
    took_s: float = 0.0
    trouble: str = ""
    records: tuple[Record, ...] = ()

    @property
    def seconds_left(self) -> float:
        """An estimate from the mean time of a record; 0 while unknown."""
        done = len(self.records)
        return sum(each.took_s for each in self.records) / done * (self.total - done) if done else 0.0


class LabRow(Struct, frozen=True):
    """One drafter on one class of prompts. `ratio` is the median speed against plain decoding, `most` the
    highest one of all rows.
    """

    id: str
    title: str
    drafter: str
    ratio: float
    most: float
    speed: str
    spread: str
    tokens_per_s: str
    accepted: str
    equal: str

    @property
    def tip(self) -> str:
        return f"{self.title}, {self.drafter}"

    @property
    def spoken(self) -> str:
        return f"{self.drafter} on {self.title}: {self.speed}, {self.spread}, {self.equal} {EQUAL}"


def rows_of(records: Sequence[Record]) -> list[LabRow]:
    """Returns a row for each class and drafter that was measured, in the order of the results."""
    labels = find("drafting.drafter").labels
    shown = [group for group in groups(records) if group.ratios and group.case != ALL_CASES]
    found = []
    for group in shown:
        ratios = group.ratios
        drafter = group.configuration.partition(" ")[0]
        found.append(
            LabRow(
                f"{group.case}/{drafter}",
                KINDS.get(group.case, group.case),
                labels.get(drafter, drafter),
                group.ratio,
                max(1.0, *(each.ratio for each in shown)),
                f"{group.ratio:.2f}×",
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
                speed(group.median(lambda pair: pair.stats.tokens_per_s)),
                percent(group.acceptance),
                f"{group.equal} of {len(group.pairs)}",
            )
        )
    return found


class LabController(QObject):
    """`settings` returns the open chat's settings, whose exactness and draft model are used. `hold_chat`
    suspends the idle work of the chat's worker.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        hold_chat: Callable[[bool], None],
        folder: Path | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._hold_chat = hold_chat
        self._model = "starter"
        self._connected = self._chat_busy = False
        self._folder = folder
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._life: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self.cases = "three-class"
        self.measurement = Measurement()
        self.window: LabWindow | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def make_window(self) -> QWidget:
        window = self.window = LabWindow()
        window.destroyed.connect(self._forget_window)
        on_click(
            (window.run_button, self.run),
            (window.stop_button, self.stop),
            (window.folder_button, self._show_folder),
        )
        self._show()
        return window

    def follow(self, link: Link) -> None:
        """Follows the chat's worker and its model; pauses while it answers or loads."""
        self._model, self._connected = link.model, link.connected
        busy = link.works or link.phase not in _IDLE
        if busy == self._chat_busy:
            return
        self._chat_busy = busy
        if self.measurement.running:
            self._pause_or_go_on()
            self._show()

    def run(self) -> None:
        if self.window is None or self.measurement.running or not self.window.drafters:
            return
        plan = Plan(
            self._model,
            self.cases,
            self.window.drafters,
            int(self.window.repeats.value),
            int(self.window.most_tokens.value),
            self._settings(),
        )
        self.measurement = Measurement(plan.model, running=True)
        if self._folder is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="draftlight-lab-")
            self._folder = Path(self._scratch.name)
        out = self._folder / time.strftime("%Y-%m-%d %H-%M-%S")
        self._life = asyncio.ensure_future(self._live(plan.command(out)))
        self._show()

    def stop(self) -> None:
        """Ends the process; finished results stay."""
        if self.measurement.running:
            self.measurement.stopping = True
            self._show()
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)

    async def close(self) -> None:
        """Ends the process and waits for it. Safe to call twice."""
        self.stop()
        if self._life is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._life), _END_TIMEOUT_S)
            self._signal(signal.SIGKILL)
            await self._life
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    # ---- inside

    async def _live(self, command: Sequence[str]) -> None:
        log: deque[str] = deque(maxlen=_LOG_LINES)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_LIMIT_BYTES,
                env=child_environment(PYTHONUNBUFFERED="1"),
                cwd=CHILD_FOLDER,
            )
        except OSError as error:
            self._finish(f"The measurement could not be started: {reason_of(error)}.")
            return
        self._process = process
        if self.measurement.stopping:  # during its start
            self._signal(signal.SIGKILL)
        self._pause_or_go_on()
        assert process.stdout
        assert process.stderr
        reading = asyncio.ensure_future(_drain(process.stderr, log))
        try:
            async for line in process.stdout:
                self._take(decode_bench_event(line))
        except (ProtocolError, ValueError) as error:  # no event, or a line above the limit
            self.measurement.trouble = str(error)
            self._signal(signal.SIGKILL)
        status = await process.wait()
        await reading
        self._process = None
        whole = self.measurement.took_s or self.measurement.stopping or self.measurement.trouble
        self._finish("" if whole else ended_with(status, log[-1] if log else ""))

    def _take(self, event: BenchEvent) -> None:
        measurement = self.measurement
        match event:
            case BenchStarted():
                measurement.model, measurement.total = event.model, event.records
            case Record():
                measurement.records = (*measurement.records, event)
            case BenchEnded():
                measurement.took_s = event.took_s
            case Failed():
                measurement.trouble = f"{event.message} {event.hint}".strip()
        self._show()

    def _finish(self, trouble: str) -> None:
        self.measurement.running = self.measurement.stopping = False
        self.measurement.trouble = self.measurement.trouble or trouble
        if self._connected:
            self._hold_chat(False)
        self._show()

    def _pause_or_go_on(self) -> None:
        if not self._chat_busy and self._connected:
            self._hold_chat(True)  # each time: the worker may have changed
        self._signal(signal.SIGSTOP if self._chat_busy else signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    def _show(self) -> None:
        if self.window is not None:
            self.window.show_measurement(self.measurement, paused=self._chat_busy)

    def _show_folder(self) -> None:
        if self._folder is not None:
            show_in_folder(self._folder)

    def _forget_window(self) -> None:
        self.window = None


async def _drain(stream: asyncio.StreamReader, log: deque[str]) -> None:
    while chunk := await stream.read(_LOG_BYTES):
        log.extend(text for line in chunk.decode("utf-8", "replace").splitlines() if (text := line.strip()))


_SIZE, _MINIMUM = QSize(1000, 720), QSize(640, 480)
_PADDING_PX = 26
_BOXES_A_ROW = 4


def _paint_bar(painter: QPainter, box: QRectF, row: LabRow) -> None:
    """The speed, with a mark at that of plain decoding."""
    draw_meter(painter, box, row.ratio / row.most, mark=1 / row.most)


COLUMNS = (
    Column("title", PROMPTS, 92),
    Column("drafter", DRAFTER, 128, grows=True),
    Column("speed", SPEED, 182, below="ratio", paint_below=_paint_bar),
    Column("spread", RANGE, 112, right=True, ink="text2"),
    Column("tokens_per_s", TOKENS_PER_S, 64, right=True),
    Column("accepted", ACCEPTED, 78, right=True),
    Column("equal", EQUAL, 92, right=True),
)


class LabWindow(SideWindow):
    """`show_measurement` after each change. `drafters` are the selected ones."""

    def __init__(self) -> None:
        super().__init__(TITLE, _SIZE, _MINIMUM)
        labels = find("drafting.drafter").labels
        self.boxes = {name: CheckBox(label) for name, label in labels.items() if name != "off"}
        for name in _FIRST_DRAFTERS:
            self.boxes[name].setChecked(True)
        self.repeats = Spin(1, 9, 1)
        self.repeats.setAccessibleName(EACH_PROMPT)
        self.repeats.set_value(3)
        self.most_tokens = Spin(8, 1024, 32)
        self.most_tokens.setAccessibleName(AT_MOST)
        self.most_tokens.set_value(128)
        for number in (self.repeats, self.most_tokens):
            number.refused.connect(number.show_refusal)
        self.run_button = Button(RUN, "primary", small=True)
        self.stop_button = Button(STOP, small=True, icon_name="stop")
        self.folder_button = Button(SHOW_FOLDER, "link", small=True)
        self.status = TextLabel("", 12, 16, tabular=True, wrap=True)
        self.list = RecordTable[LabRow](RESULTS, COLUMNS)
        self.list.set_empty(EMPTY, EMPTY_HINT)
        for box in self.boxes.values():
            box.toggled.connect(self._enable)
        numbers = row_of(
            *(TextLabel(EACH_PROMPT, 12, 16), self.repeats, 16),
            *(TextLabel(AT_MOST, 12, 16), self.most_tokens, STRETCH),
            gap=8,
        )
        boxes = list(self.boxes.values())
        choices = column_of(
            *(
                row_of(*boxes[at : at + _BOXES_A_ROW], STRETCH, gap=14)
                for at in range(0, len(boxes), _BOXES_A_ROW)
            ),
            numbers,
            row_of((self.status, 1), self.folder_button, gap=8),
            gap=8,
            margins=(_PADDING_PX, 12, _PADDING_PX, 12),
        )
        header = self.make_header((self.run_button, self.stop_button), subtitle=SUBTITLE)
        column_of(header, choices, Hairline(), (self.list, 1), parent=self)

    @property
    def drafters(self) -> tuple[str, ...]:
        return tuple(name for name, box in self.boxes.items() if box.isChecked())

    def show_measurement(self, run: Measurement, *, paused: bool) -> None:
        """Shows the progress and the results. `paused`: it waits while the chat is answered."""
        rows = rows_of(run.records)
        self.list.show_rows(rows)
        shown, hidden = self.run_button, self.stop_button
        if run.running:
            shown, hidden = hidden, shown
        shown.show()
        if hidden.hasFocus():
            shown.setFocus()  # before the other one is hidden, which would pass it on
        hidden.hide()
        self.stop_button.setEnabled(not run.stopping)
        for control in (*self.boxes.values(), self.repeats, self.most_tokens):
            control.setEnabled(not run.running)
        self.folder_button.setVisible(bool(rows))
        if not run.running:
            text = run.trouble or (measured(run.model, run.took_s) if run.took_s else EMPTY_HINT)
        elif run.stopping or paused or not run.total:
            text = STOPPING if run.stopping else PAUSED if paused else STARTING
        else:
            text = progress(len(run.records), run.total, run.seconds_left)
        self.status.setText(text)
        self.status.set_color("danger" if run.trouble and not run.running else "text2")
        self._enable()

    def _enable(self) -> None:
        self.run_button.setEnabled(bool(self.drafters))

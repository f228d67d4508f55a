"""LabController: runs sweeps in a child process, and opens their results."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.controls.sheets import choose_folder, open_file, open_files
from app.features.lab import strings
from app.features.lab.strings import folder_name
from app.features.models.controller import ModelsController
from app.features.models.facts import names_of
from app.features.side_window import on_click
from app.session.lab import (
    ChatBusy,
    Given,
    Gone,
    GoOn,
    HoldChat,
    Lab,
    LabRun,
    LabStage,
    Launch,
    Opened,
    Pause,
    ResultLost,
    RunEnd,
    Said,
    StopSweep,
    SweepPlan,
    advance,
)
from app.session.turn.link_state import Link, Phase
from app.store.lab_files import (
    FILE_NAME,
    about_s,
    answers_of,
    merged,
    past_sweeps,
    read_classes,
    read_results,
    readings_of,
)
from app.theme.theme import Theme
from core.errors import ProtocolError, RequestError
from core.events.sweep import SweepResults, decode_sweep_event
from core.settings import Settings
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment
from core.system.paths import resources_dir

if TYPE_CHECKING:  # imported with the window
    from app.features.lab.window import LabWindow

_LINE_LIMIT_BYTES = 16 * 1024 * 1024
_TOO_LONG = f"A result of more than {_LINE_LIMIT_BYTES:,} bytes is not shown; the folder has it."
_LOG_LINES = 20
_SHOWN_CHARACTERS = 300
_END_TIMEOUT_S = 5.0


def sweep_command(plan: SweepPlan, out: Path) -> list[str]:
    """Returns the command of the sweep, with absolute paths because it runs in its own folder."""
    words = ["bench", "sweep", "--json", "--out", str(out.absolute())]
    words += ["--model", absolute_reference(plan.model)]
    for file in plan.files:
        words += ["--prompts", str(Path(file).absolute())]
    words += ["--classes", ",".join(plan.classes), "--drafters", ",".join(plan.drafters)]
    words += ["--pairs", str(plan.repeats), "--max-tokens", str(plan.max_tokens)]
    words += ["--exactness", plan.exactness]
    if plan.draft_model:
        words += ["--draft-model", absolute_reference(plan.draft_model)]
    if plan.keeps:
        keeps = ",".join(f"{keep:g}" for keep in plan.keeps)
        words += ["--keep", keeps, "--keep-tokens", str(plan.keep_tokens)]
    return child_command(*words)


class SweepProcess:
    """Calls `hear` with `Said` and `ResultLost`, and at the end with one `Gone`."""

    def __init__(self, hear: Callable[[Given], None]) -> None:
        self._hear = hear
        self._life: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._wanted_paused = False
        self._unwanted = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process's id; None without one."""
        return self._process.pid if self._process else None

    def start(self, command: Sequence[str]) -> None:
        """Starts the process; the previous one has ended."""
        self._wanted_paused = self._unwanted = False
        self._life = asyncio.ensure_future(self._live(list(command)))

    def pause(self) -> None:
        self._wanted_paused = True
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Resumes the process."""
        self._wanted_paused = False
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Ends the process, by force if necessary."""
        if self._ending is None and self._life is not None:
            self._ending = asyncio.ensure_future(self._end())

    async def close(self) -> None:
        """Ends the process and waits for it. Safe to call twice."""
        self.end()
        for task in (self._ending, self._life):
            if task is not None:
                await task
        self._ending = self._life = None

    async def _live(self, command: list[str]) -> None:
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
            self._hear(Gone(f"The sweep could not be started: {error}."))
            return
        self._process = process
        if self._unwanted:  # during its start
            self._signal(signal.SIGKILL)
        elif self._wanted_paused:
            self.pause()
        assert process.stdout
        assert process.stderr
        reading = asyncio.ensure_future(_drain(process.stderr, log))
        while line := await _line(process.stdout, lambda: self._hear(ResultLost(_TOO_LONG))):
            try:
                self._hear(Said(decode_sweep_event(line)))
            except ProtocolError as error:
                self._hear(ResultLost(error.message))
        status = await process.wait()
        await reading
        self._process = None
        last = f" Its last words: {log[-1][-_SHOWN_CHARACTERS:]}" if log else ""
        self._hear(Gone(f"The sweep ended with status {status}.{last}"))

    async def _end(self) -> None:
        self._unwanted = True
        process = self._process
        if process is not None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
            try:
                await asyncio.wait_for(process.wait(), _END_TIMEOUT_S)
            except TimeoutError:
                self._signal(signal.SIGKILL)
        self._ending = None

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)


async def _line(stream: asyncio.StreamReader, tell_skipped: Callable[[], object]) -> bytes:
    """Returns the next line, empty at the end. Skips and reports one that is too long."""
    skipping = False
    while True:
        try:
            line = await stream.readuntil()
        except asyncio.LimitOverrunError as error:
            await stream.readexactly(error.consumed)
            skipping = True
            continue
        except asyncio.IncompleteReadError as error:  # the end of the output
            line = error.partial
        if not skipping:
            return line
        tell_skipped()
        skipping = False
        if not line:
            return line


async def _drain(stream: asyncio.StreamReader, log: deque[str]) -> None:
    while line := await _line(stream, lambda: log.append(_TOO_LONG)):
        if text := line.decode("utf-8", "replace").strip():
            log.append(text)


_IDLE = (Phase.READY, Phase.NO_MODEL, Phase.DEAD, Phase.CLOSED)
_MOST_PAST = 30


def _readable(folder: Path) -> list[tuple[str, SweepResults]]:
    """Returns the files and results of earlier sweeps in `folder`, the newest first."""
    found = []
    for file in past_sweeps(folder)[:_MOST_PAST]:
        with contextlib.suppress(RequestError):
            found.append((str(file), read_results(file)))
    return found


class LabController(QObject):
    """`settings` returns the current settings: the Lab marks their keep share and uses their draft model.

    `models` has the models of this machine; `hold_chat` tells the chat's worker to answer chats only.
    """

    def __init__(
        self,
        theme: Theme,
        settings: Callable[[], Settings],
        models: ModelsController,
        hold_chat: Callable[[bool], None],
        folder: Path | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._settings = settings
        self._hold_chat = hold_chat
        self._connected = False
        self.folder = folder
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._models = models
        self._model = "starter"
        self._own: dict[str, str] = {}  # folders that the person chose
        models.changed.connect(self._show_models)
        self._out: Path | None = None  # the folder of the shown results
        self._before: list[SweepResults] = []
        self._is_opened = False  # the shown results come from a file that was opened
        self._reading: asyncio.Task[None] | None = None
        self.process = SweepProcess(self.take)
        self.lab = Lab()
        self.window: LabWindow | None = None

    def make_window(self) -> QWidget:
        """Makes the window. Once."""
        from app.features.lab.window import LabWindow

        window = self.window = LabWindow(self._theme)
        window.destroyed.connect(self._forget_window)
        choices = window.choices
        choices.changed.connect(self._show_about)
        choices.folder_requested.connect(self._choose_model)
        window.past_chosen.connect(self._open_past)
        on_click(
            (choices.run_button, self.run),
            (choices.stop_button, lambda: self.take(StopSweep())),
            (choices.own_prompts, self._choose_prompts),
            (window.open_button, self._choose_results),
            (window.export_button, self._choose_export),
        )
        for file in sorted((resources_dir() / "bench").glob("*.jsonl"), reverse=True):
            choices.add_classes(read_classes(file))
        self._find_past()
        self._show_models(chosen=self._model)
        self._models.watch()
        self._show()
        return window

    def follow(self, link: Link) -> None:
        """Follows the state of the chat's worker and its model."""
        self._connected = link.connected
        if link.model != self._model:
            self._model = link.model
            self._show_models(chosen=link.model)
        self.take(ChatBusy(link.works or link.phase not in _IDLE))

    def run(self) -> None:
        """Starts the selected sweep."""
        if self.window is None:
            return
        plan = self.window.choices.plan
        if plan.drafters and plan.classes and plan.model:
            self.take(LabRun(plan, time.time()))

    def take(self, given: Given) -> None:
        """Handles one input."""
        before = self.lab
        step = advance(before, given)
        self.lab = step.lab
        for effect in step.effects:
            match effect:
                case Launch(plan):
                    self._launch(plan)
                case Pause():
                    self.process.pause()
                case GoOn():
                    self.process.go_on()
                case HoldChat(wanted):
                    if self._connected:
                        self._hold_chat(wanted)
                case RunEnd():
                    self.process.end()
        if step.lab is not before:
            if before.stage is not LabStage.IDLE and step.lab.stage is LabStage.IDLE:
                self._find_past()
            self._show()

    def open_results(self, files: list[Path]) -> None:
        """Opens results, several as one. Reports files that cannot be read."""
        try:
            found = merged([read_results(file) for file in files])
        except RequestError as error:
            self._say(error)
            return
        self._out = files[0].parent if len(files) == 1 else None
        self.take(Opened(found))
        self._find_past(opened=True)

    def export(self, folder: Path) -> list[Path]:
        """Writes report, results and picture to `folder`; returns the files. Reports errors."""
        window, results = self.window, self.lab.results
        if window is None or results is None:
            return []
        written = []
        try:
            target = _free(
                folder / f"Draftlight Lab {time.strftime('%Y-%m-%d %H.%M', time.localtime(results.began_s))}"
            )
            target.mkdir(parents=True)
            for name in ("report.md", FILE_NAME):
                if self._out is not None and (self._out / name).is_file():
                    written.append(Path(shutil.copyfile(self._out / name, target / name)))
            picture = target / "charts.png"
            if not window.picture().save(str(picture)):
                raise OSError(None, f"{picture.name} cannot be written")
            written.append(picture)
        except OSError as error:
            self._say(RequestError(f"{folder} cannot be written: {error.strerror}.", strings.OTHER_FOLDER))
            return []
        window.choices.show_about(strings.exported(target.name, len(written)))
        return written

    async def close(self) -> None:
        """Ends the sweep and waits for it."""
        await self.process.close()
        if self._reading is not None:
            await self._reading
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    # ---- inside

    def _launch(self, plan: SweepPlan) -> None:
        if self.folder is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="draftlight-lab-")
            self.folder = Path(self._scratch.name)
        self._out = _free(self.folder / time.strftime("%Y-%m-%d %H-%M-%S"))
        self.process.start(sweep_command(plan, self._out))

    def _show(self) -> None:
        if self.window is None:
            return
        self.window.show_lab(self.lab)
        settings = self._settings()
        self.window.keeps.show_chosen(settings.prefill.keep_pct)
        self.window.choices.show_draft_model(settings.draft_model.model)
        self._show_about()

    def _show_about(self) -> None:
        if self.window is None or self.lab.stage is not LabStage.IDLE:
            return
        choices = self.window.choices
        # Of a folder that is not in the list, the sweep finds out.
        entries = {each.reference: each for each in self._models.state.models}
        entry = entries.get(choices.model.value)
        choices.show_head(entry is None or entry.head_bytes > 0)
        plan = choices.plan
        ready = bool(plan.drafters and plan.classes and plan.model)
        choices.run_button.setEnabled(ready)
        if not ready:
            choices.show_about(strings.NOTHING_CHOSEN)
        elif self.lab.trouble:
            choices.show_about(self.lab.trouble, danger=True)
        else:
            answers, readings = answers_of(plan, choices.classes), readings_of(plan)
            choices.show_about(strings.plan(answers, readings, about_s(plan, choices.classes, self._before)))

    def _show_models(self, chosen: str = "") -> None:
        """Shows the loadable models of this machine; the selection stays if possible."""
        models = {self._model: folder_name(self._model), "starter": folder_name("starter")}
        models |= names_of([each for each in self._models.state.models if not each.problem])
        models |= self._own
        info = self._models.state.info
        if info is not None:
            models[self._model] = info.name
        if self.window is None:
            return
        choices = self.window.choices
        held = choices.model.value
        choices.show_models(list(models.items()), chosen or (held if held in models else self._model))
        self._show_about()

    def _find_past(self, opened: bool = False) -> None:
        """Lists the results of earlier sweeps. A thread reads them, which takes longer than a frame."""
        self._is_opened = opened
        self._reading = asyncio.ensure_future(self._read_past(self._reading))

    async def _read_past(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        self._show_past(await asyncio.to_thread(_readable, self.folder) if self.folder else [])

    def _show_past(self, past: list[tuple[str, SweepResults]]) -> None:
        self._before = [results for _, results in past]
        found = [(file, strings.when(results.began_s)) for file, results in past]
        if self.window is None:
            return
        if past:  # they improve the estimate of a sweep's time
            self._show_about()
        now = str(self._out / FILE_NAME) if self._out else ""
        known = any(file == now for file, _ in found)
        if not known:
            found.insert(0, ("", strings.OPENED if self._is_opened else strings.NOW))
        self.window.show_past(found, now if known else "")

    def _open_past(self, file: str) -> None:
        if file:
            self.open_results([Path(file)])

    def _choose_results(self) -> None:
        if self.window:
            folder, kinds = str(self.folder or ""), strings.RESULTS_FILTER
            open_files(self.window, strings.OPEN_TITLE, self.open_results, kinds=kinds, folder=folder)

    def _choose_export(self) -> None:
        if self.window:
            choose_folder(self.window, strings.EXPORT_TITLE, self.export)

    def _choose_prompts(self) -> None:
        if self.window:
            open_file(self.window, strings.OWN_PROMPTS, self.add_prompts, kinds=strings.PROMPTS_FILTER)

    def offer_model(self, folder: Path) -> None:
        """Adds the model in `folder` and selects it."""
        self._own[str(folder)] = folder_name(str(folder))
        self._show_models(chosen=str(folder))

    def add_prompts(self, file: Path) -> None:
        """Adds the prompt classes of a file. Reports a file that cannot be read."""
        if self.window is None:
            return
        try:
            self.window.choices.add_classes(read_classes(file))
        except RequestError as error:
            self._say(error)

    def _choose_model(self) -> None:
        if self.window:
            choose_folder(
                self.window,
                strings.CHOOSE_FOLDER,
                self.offer_model,
                lambda: self._show_models(chosen=self._model),
            )

    def _say(self, error: RequestError) -> None:
        if self.window is not None:
            self.window.choices.show_about(f"{error.message} {error.hint}".strip(), danger=True)

    def _forget_window(self) -> None:
        self.window = None


def _free(path: Path) -> Path:
    """Returns `path`, or with the first free number appended."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name} ({number})")
    return found

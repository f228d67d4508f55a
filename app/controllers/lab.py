"""LabController: the Lab's state, the sweep's process, the files of earlier sweeps, and the
window.

The window is made when it is first asked for. Sweeps go on while it is closed; they stand still
while the chat's worker is at work, and end with the chat window. What is measured is kept in `folder`,
a folder a sweep; without one it lasts for this run only.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QWidget

from app.controllers.lab_process import SweepProcess, sweep_command
from app.controllers.models import ModelsController
from app.controls.first_folder import first_folder
from app.session.lab.lab import (
    ChatBusy,
    Given,
    GoOn,
    HoldChat,
    Lab,
    LabRun,
    LabStage,
    Launch,
    Opened,
    Pause,
    RunEnd,
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
from app.windows.lab import strings
from app.windows.lab.folder_name import folder_name
from app.windows.models.names import names_of
from core.errors import RequestError
from core.events.sweep import SweepResults
from core.settings import Settings
from core.system.paths import resources_dir

if TYPE_CHECKING:  # its charts come in with the window
    from app.windows.lab.window import LabWindow

_IDLE = (Phase.READY, Phase.NO_MODEL, Phase.DEAD, Phase.CLOSED)
_MUTE = (Phase.STARTING, Phase.DEAD, Phase.CLOSED)
_MOST_PAST = 30


class LabController(QObject):
    """`settings` gives those in force: the Lab marks their share, and takes their draft model.

    `models` knows which models are here; `hold_chat` tells the chat's worker to do only what it is asked.
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
        self._phase = Phase.STARTING
        self.folder = folder
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._models = models
        self._model = "starter"
        self._own: dict[str, str] = {}  # folders that were chosen here
        models.changed.connect(self._show_models)
        self._out: Path | None = None  # where the results that are shown lie
        self._before: list[SweepResults] = []
        self.process = SweepProcess(self.take)
        self.lab = Lab()
        self.window: LabWindow | None = None

    def make_window(self) -> QWidget:
        """The window; asked for once."""
        from app.windows.lab.window import LabWindow

        window = self.window = LabWindow(self._theme)
        window.destroyed.connect(self._forget_window)
        choices = window.choices
        choices.changed.connect(self._show_about)
        choices.run_requested.connect(self.run)
        choices.stop_requested.connect(lambda: self.take(StopSweep()))
        choices.folder_requested.connect(self._choose_model)
        choices.prompts_requested.connect(self._choose_prompts)
        window.past_chosen.connect(self._open_past)
        window.open_requested.connect(self._choose_results)
        window.export_requested.connect(self._choose_export)
        for file in sorted((resources_dir() / "bench").glob("*.jsonl"), reverse=True):
            choices.add_classes(read_classes(file))
        self._find_past()
        self._show_models(chosen=self._model)
        self._models.watch()
        self._show()
        return window

    def follow(self, link: Link) -> None:
        """What the chat's worker is at, and with which model."""
        self._phase = link.phase
        if link.model != self._model:
            self._model = link.model
            self._show_models(chosen=link.model)
        self.take(ChatBusy(link.works or link.phase not in _IDLE))

    def run(self) -> None:
        """Sweep what is chosen."""
        if self.window is None:
            return
        plan = self.window.choices.plan
        if plan.drafters and plan.classes and plan.model:
            self.take(LabRun(plan, time.time()))

    def take(self, given: Given) -> None:
        """One thing heard or wanted."""
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
                    if self._phase not in _MUTE:
                        self._hold_chat(wanted)
                case RunEnd():
                    self.process.end()
        if step.lab is not before:
            if before.stage is not LabStage.IDLE and step.lab.stage is LabStage.IDLE:
                self._find_past()
            self._show()

    def open_results(self, files: list[Path]) -> None:
        """Show these instead; several are shown together. Says what cannot be read."""
        try:
            found = merged([read_results(file) for file in files])
        except RequestError as error:
            self._say(error)
            return
        self._out = files[0].parent if len(files) == 1 else None
        self.take(Opened(found))
        self._find_past(opened=True)

    def export(self, folder: Path) -> list[Path]:
        """Report, results and picture into `folder`; the files written. Says what cannot be written."""
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
        """End the sweep and wait for it."""
        await self.process.close()
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
        """Those on this machine that can be loaded; the choice stays if it is among them."""
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

    def _find_past(self, opened: bool = False) -> None:
        """The earlier sweeps, those that can be read."""
        found: list[tuple[str, str]] = []
        self._before = []
        for file in past_sweeps(self.folder)[:_MOST_PAST] if self.folder else []:
            try:
                results = read_results(file)
            except RequestError:
                continue
            self._before.append(results)
            found.append((str(file), strings.when(results.began_s)))
        if self.window is None:
            return
        now = str(self._out / FILE_NAME) if self._out else ""
        known = any(file == now for file, _ in found)
        if not known:
            found.insert(0, ("", strings.OPENED if opened else strings.NOW))
        self.window.show_past(found, now if known else "")

    def _open_past(self, file: str) -> None:
        if file:
            self.open_results([Path(file)])

    def _choose_results(self) -> None:
        files, _ = QFileDialog.getOpenFileNames(
            self.window, strings.OPEN_TITLE, str(self.folder or ""), strings.RESULTS_FILTER
        )
        if files:
            self.open_results([Path(file) for file in files])

    def _choose_export(self) -> None:
        folder = QFileDialog.getExistingDirectory(self.window, strings.EXPORT_TITLE, first_folder())
        if folder:
            self.export(Path(folder))

    def _choose_prompts(self) -> None:
        file, _ = QFileDialog.getOpenFileName(
            self.window, strings.OWN_PROMPTS, first_folder(), strings.PROMPTS_FILTER
        )
        if file:
            self.add_prompts(Path(file))

    def offer_model(self, folder: Path) -> None:
        """Offer the model in `folder`, and choose it."""
        self._own[str(folder)] = folder_name(str(folder))
        self._show_models(chosen=str(folder))

    def add_prompts(self, file: Path) -> None:
        """Offer the classes of a file. Says what cannot be read."""
        if self.window is None:
            return
        try:
            self.window.choices.add_classes(read_classes(file))
        except RequestError as error:
            self._say(error)

    def _choose_model(self) -> None:
        folder = QFileDialog.getExistingDirectory(self.window, strings.CHOOSE_FOLDER, first_folder())
        if folder:
            self.offer_model(Path(folder))
        else:
            self._show_models(chosen=self._model)

    def _say(self, error: RequestError) -> None:
        if self.window is not None:
            self.window.choices.show_about(f"{error.message} {error.hint}".strip(), danger=True)

    def _forget_window(self) -> None:
        self.window = None


def _free(path: Path) -> Path:
    """`path`, or with the first number that is free."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name} ({number})")
    return found

"""MachinesController: the list of machines, checks of them, and the shared secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject

from app.controls.sheets import show_in_folder
from app.features.machines import strings
from app.features.machines.rows import HERE, MachineRow, finding_of, machine_rows, model_rows
from app.features.models.controller import ModelsController
from app.features.side_window import on_click
from app.session import cluster as editing
from app.session.cluster import machine_of
from app.store.preferences import PreferencesFile
from core.errors import RequestError, SettingError
from core.settings import declared
from core.settings.cluster import Cluster, ClusterForm, Machine
from core.system.files import key_of
from core.system.paths import data_dir

if TYPE_CHECKING:  # imported with the window
    from app.features.machines.window import MachinesWindow


def secret_path(cluster: Cluster) -> Path:
    """Returns the path of the secret file, as the worker and `draftlight follow` use it."""
    return Path(cluster.secret_file).expanduser() if cluster.secret_file else data_dir() / "cluster-secret"


def make_secret(cluster: Cluster) -> None:
    """Creates the secret file if it is missing. Raises `KeyFileError`."""
    key_of(secret_path(cluster))


_KEYS = tuple(setting.key for setting in declared(ClusterForm))
_ADDRESS = "machine.address"


class MachinesController(QObject):
    """`open` fills a window as long as it lives."""

    def __init__(
        self, models: ModelsController, preferences: PreferencesFile, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._models = models
        self._preferences = preferences
        self._window: MachinesWindow | None = None
        self._new: Machine | None = None  # a new machine that is not added yet
        self._refused: set[str] = set()  # fields of the selected machine with refused values
        self._secret_error = ""
        self._check_next = False  # requested during a check, when the others seem busy
        models.changed.connect(self._follow)

    @property
    def cluster(self) -> Cluster:
        """The stored machines."""
        return self._preferences.now.cluster

    def open(self, window: MachinesWindow) -> MachinesWindow:
        """Shows everything in `window`."""
        self._window = window
        panel = window.panel
        window.shown.connect(self._look)
        on_click(
            (window.new, self._begin),
            (window.check, self._check),
            (window.run, self._run),
            (window.alone, self._run_alone),
            (panel.add, self._add),
            (panel.cancel, self._cancel),
            (panel.remove, self._remove),
            (panel.make_secret, self._make_secret),
            (panel.show_file, lambda: show_in_folder(secret_path(self.cluster))),
        )
        window.machines.row_selected.connect(self._choose)
        window.machines.remove_requested.connect(self._remove)
        window.models.row_selected.connect(lambda _: self._show())
        panel.edited.connect(self._edit)
        window.destroyed.connect(self._forget_window)
        self._models.watch()
        self._show()
        if loaded := self._models.state.loaded:
            window.models.select(loaded.reference)
        return window

    # ---- commands

    def _look(self) -> None:
        """Checks which machines can be reached, without a model, which would be read."""
        if self.cluster.machines and secret_path(self.cluster).exists() and not self._models.state.checking:
            self._models.check(self.cluster, "")
        self._show()

    def _check(self) -> None:
        if self._models.state.checking:
            self._check_next = True
            self._show()
        elif self._window is not None:
            self._check_next = False
            self._models.check(self.cluster, self._window.models.selected)

    def _run(self) -> None:
        if self._window is not None and self._window.models.selected:
            self._models.load(self._window.models.selected, self.cluster)

    def _run_alone(self) -> None:
        if info := self._models.state.info:
            self._models.load(info.reference)

    def _begin(self) -> None:
        self._new = Machine(editing.free_name(self.cluster), "")
        self._refused.clear()
        self._show()
        if self._window is not None:
            self._window.panel.field(_ADDRESS).control.setFocus()

    def _cancel(self) -> None:
        self._new = None
        self._refused.clear()
        self._show()

    def _choose(self, name: str) -> None:
        self._cancel()

    def _edit(self, key: str, value: Any) -> None:
        value = value.strip() if isinstance(value, str) else value
        try:
            if key.startswith("cluster."):
                self._keep(editing.with_value(self.cluster, key, value))
            elif self._new is not None:
                self._new = editing.machine_with(self._new, key, value)
            elif machine := machine_of(self.cluster, self._chosen):
                self._change(machine, editing.machine_with(machine, key, value))
        except SettingError as error:
            self._refused.add(key)
            if self._window is not None:
                self._window.panel.show_error(key, error)
            return
        self._refused.discard(key)
        self._show()

    def _change(self, before: Machine, after: Machine) -> None:
        self._keep(editing.changed(self.cluster, before.name, after, strings.WHOSE_LIST))
        if self._window is not None and after.name != before.name:
            # The selection follows the new name.
            with_signals = self._window.machines.blockSignals(True)
            self._window.machines.show_rows(machine_rows(self.cluster, self._models.state))
            self._window.machines.select(after.name)
            self._window.machines.blockSignals(with_signals)

    def _add(self) -> None:
        machine, window = self._new, self._window
        if machine is None or window is None:
            return
        try:
            # Edited values are stored or shown as refused.
            machine = editing.machine_with(machine, _ADDRESS, machine.address)
            if self._refused:
                return
            self._keep(editing.added(self.cluster, machine, strings.WHOSE_LIST))
        except SettingError as error:
            key = "machine.name" if machine.address else _ADDRESS
            window.panel.show_error(key, error)
            return
        self._new = None
        self._show()
        window.machines.select(machine.name)
        self._look()

    def _remove(self) -> None:
        if machine_of(self.cluster, self._chosen) is not None and self._new is None:
            self._keep(editing.without(self.cluster, self._chosen))
            self._show()

    def _make_secret(self) -> None:
        try:
            make_secret(self.cluster)
        except RequestError as error:
            self._secret_error = str(error)
        else:
            self._secret_error = ""
        self._show()

    # ---- inside

    def _follow(self) -> None:
        if self._check_next and not self._models.state.checking:
            self._check()
        self._show()

    @property
    def _chosen(self) -> str:
        return self._window.machines.selected if self._window is not None else ""

    def _keep(self, cluster: Cluster) -> None:
        self._preferences.change(cluster=cluster)

    def _forget_window(self) -> None:
        self._window = None

    def _show(self) -> None:
        window = self._window
        if window is None:
            return
        cluster, state, models = self.cluster, self._models.state, self._models
        rows = machine_rows(cluster, state)
        window.machines.show_rows(rows)
        offered = model_rows(state)
        window.models.show_rows(offered)
        self._show_panel({row.id: row for row in rows})
        model = window.models.selected
        name = next((row.title for row in offered if row.id == model), "")
        window.show_finding(finding_of(cluster, state, model, name, alive=models.alive))
        info = state.info if state.info and state.info.machines else None
        window.titles.say(strings.subtitle(cluster.size, info.name if info else ""))
        chosen = state.entry(model)
        names = tuple(machine.name for machine in cluster.machines)
        running = info is not None and chosen is state.loaded and info.machines[1:] == names
        asks = models.alive and bool(cluster.machines)
        looking = state.checking and (
            self._check_next or (state.check is not None and bool(state.check.model))
        )
        window.show_ways(
            check=asks and not looking,
            run=asks and not state.checking and models.can_load and bool(model),
            running=running,
            why_not=strings.WAIT if state.busy and not models.can_load else "",
        )

    def _show_panel(self, rows: dict[str, MachineRow]) -> None:
        assert self._window is not None
        panel, cluster = self._window.panel, self.cluster
        path = secret_path(cluster)
        there = path.exists()
        said = strings.secret_there(str(path)) if there else strings.secret_missing(str(path))
        panel.show_secret(said, str(path), there=there, error=self._secret_error)
        machine = self._new or machine_of(cluster, self._chosen)
        row = rows.get(self._chosen)
        if self._new is not None:
            panel.show_machine(strings.NEW_MACHINE, "", "", new=True)
        elif machine is not None and row is not None:
            panel.show_machine(row.title, _about(row), row.problem, new=False)
        else:
            here = rows[HERE]
            panel.show_here(_about(here), here.problem)
        address = machine.address if machine else ""
        panel.show_command(strings.follow_command(address or strings.ITS_ADDRESS))
        values = {
            key: editing.value_of(machine or Machine("", ""), cluster, key)
            for key in _KEYS
            if key not in self._refused
        }
        panel.show_values(values)


def _about(row: MachineRow) -> str:
    """Returns a machine's description without its problems."""
    return row.tip.removesuffix(row.problem).strip()

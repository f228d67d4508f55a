"""The lists of machines and of models that can run on them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from app.controls.record_table import Column, Level, paint_names, paint_state
from app.features.machines import strings
from app.features.models.facts import names_of, precision
from app.features.models.state import ModelsState
from app.features.models.strings import joined, loading, size
from app.gauges.figures import DASH, spoken_text, step_time
from app.session.cluster import Spread, limits_of, spread_of
from core.events import MachineSeen
from core.settings.cluster import Cluster, Machine

# The id of this machine, which no name equals.
HERE = "\0"


class MachineRow(Struct, frozen=True):
    """`id` is the machine's name, `HERE` for this one. `problem` has all its problems."""

    id: str
    title: str
    subtitle: str
    chip: str = DASH
    memory: str = DASH
    holds: str = DASH
    step: str = DASH
    version: str = DASH
    state: str = strings.UNKNOWN
    level: Level = "dim"
    tip: str = ""
    problem: str = ""

    @property
    def spoken(self) -> str:
        """The text for assistive technology."""
        return spoken_text(
            *(self.title, self.subtitle, self.state),
            *((strings.CHIP, self.chip), (strings.MEMORY, self.memory), (strings.HOLDS, self.holds)),
            *((strings.STEP, self.step), (strings.VERSION, self.version), self.problem),
        )


class ModelRow(Struct, frozen=True):
    """`id` is the model's reference."""

    id: str
    title: str
    subtitle: str
    needs: str
    each: str
    state: str
    level: Level
    tip: str = ""

    @property
    def spoken(self) -> str:
        """The row as assistive technology reads it."""
        needs, each = (strings.NEEDS, self.needs), (strings.EACH, self.each)
        return spoken_text(self.title, self.subtitle, needs, each, self.state)


class Finding(Struct, frozen=True):
    """A message in lines; `bad` if something is missing."""

    lines: tuple[str, ...]
    bad: bool = False


def machine_rows(cluster: Cluster, state: ModelsState) -> tuple[MachineRow, ...]:
    """Returns this machine, then those of the list, in order."""
    seen = state.checked.machines if state.checked else ()
    own = _here(seen[0] if seen else None, state)
    # The name may belong to another address since the check.
    known = {(each.name, each.address): each for each in seen[1:]}
    others = (
        _machine(machine, known.get((machine.name, machine.address)), state) for machine in cluster.machines
    )
    return (own, *others)


def model_rows(state: ModelsState) -> tuple[ModelRow, ...]:
    """Returns the models on the disk, each with the least number of machines that can hold it."""
    limits = limits_of(state.limit_bytes, state.checked)
    names = names_of(state.models)
    rows = []
    for entry in state.models:
        spread = spread_of(entry, limits)
        # A model too large for this machine alone is not a problem here.
        unusable = bool(entry.problem) and (spread is None or spread.machines == 1)
        rows.append(
            ModelRow(
                entry.reference,
                names[entry.reference],
                joined((precision(entry), size(entry.disk_bytes))),
                _needs(spread),
                strings.gb(spread.each_bytes) if spread else DASH,
                entry.problem if unusable else _fit(spread),
                "bad" if unusable or (spread is not None and not spread.machines) else "plain",
                entry.problem if unusable else "",
            )
        )
    return tuple(rows)


def _needs(spread: Spread | None) -> str:
    return strings.gb(spread.need_bytes) if spread else DASH


def _fit(spread: Spread | None) -> str:
    return strings.runs_on(spread.machines, spread.of) if spread else strings.UNKNOWN_FIT


def _here(seen: MachineSeen | None, state: ModelsState) -> MachineRow:
    row = MachineRow(HERE, strings.HERE, "", state=strings.LEADS, level="plain")
    if seen is not None:
        row = _told(row, seen)
        row = replace(row, subtitle=seen.name)
        if seen.problem:
            row = replace(row, state=strings.WRONG, level="bad")
    return _at_work(row, 0, state)


def _machine(machine: Machine, seen: MachineSeen | None, state: ModelsState) -> MachineRow:
    row = MachineRow(machine.name, machine.name, machine.address)
    if seen is not None:
        row = _told(row, seen)
    if state.checking:
        row = replace(row, state=strings.CHECKING, level="dim")
    elif seen is not None:
        row = replace(row, state=_state(seen), level="bad" if seen.problem else "plain")
    ranks = [each.name for each in state.machines]
    return _at_work(row, ranks.index(machine.name, 1), state) if machine.name in ranks[1:] else row


def _state(seen: MachineSeen) -> str:
    if not seen.reached:
        return strings.NOT_REACHED
    if seen.busy:
        return strings.BUSY
    return strings.WRONG if seen.problem else strings.READY


def _told(row: MachineRow, seen: MachineSeen) -> MachineRow:
    """Returns `row` with the machine's own report."""
    problem = f"{seen.problem} {seen.hint}".strip()
    if not seen.reached and not seen.chip:
        return replace(row, problem=problem, tip=problem)
    versions = strings.versions(seen.version, seen.mlx, seen.mlx_lm, seen.backends)
    return replace(
        row,
        chip=seen.chip or DASH,
        memory=strings.of_bytes(seen.limit_bytes, seen.memory_bytes),
        holds=strings.gb(seen.need_bytes) if seen.need_bytes else DASH,
        version=seen.version or DASH,
        tip=f"{seen.chip}. {versions}. {problem}".strip(),
        problem=problem,
    )


def _at_work(row: MachineRow, rank: int, state: ModelsState) -> MachineRow:
    """Returns `row` with live figures, if the model runs on several machines."""
    if rank >= len(state.machines):
        return row
    use = state.machines[rank]
    return replace(
        row,
        holds=strings.gb(use.memory_bytes),
        step=step_time(use.step_s),
        state=strings.AT_WORK,
        level="live",
    )


def finding_of(cluster: Cluster, state: ModelsState, model: str, name: str, *, alive: bool) -> Finding:
    """Returns the message under the lists about `model` (a reference, named `name`) on these machines."""
    if not alive:
        return Finding((strings.NO_WORKER,))
    if state.loading:
        return Finding((loading(state.fraction),))
    if state.checking:
        return Finding((strings.CHECKING,))
    if state.problem:
        return Finding((f"{state.problem} {state.hint}".strip(),), True)
    if not cluster.machines:
        return Finding((strings.NO_MACHINES,))
    check, checked = state.check, state.checked
    if check is None or checked is None or check.cluster != cluster or check.model not in ("", model):
        return Finding((strings.NOT_CHECKED,))
    if not checked.runs:
        wrong = [_named(each) for each in checked.machines if each.problem]
        return Finding((*wrong, *checked.problems), True)
    count = len(checked.machines)
    if not check.model:
        return Finding((strings.all_reached(count),))
    each = max(machine.need_bytes for machine in checked.machines)
    return Finding((strings.runs(name, count, each, checked.backend, checked.split),))


def _named(seen: MachineSeen) -> str:
    problem = f"{seen.problem} {seen.hint}".strip()
    return problem if seen.name in problem else f"{seen.name}: {problem}"


MACHINE_COLUMNS = (
    Column("machine", strings.MACHINE_COLUMN, 150, after_px=12, grows=True, paint=paint_names),
    Column("state", strings.STATE, 96, after_px=12, paint=paint_state),
    Column("chip", strings.CHIP, 140, after_px=12, ink="text2"),
    Column("memory", strings.MEMORY, 116, right=True),
    Column("holds", strings.HOLDS, 82, right=True),
    Column("step", strings.STEP, 68, right=True),
    Column("version", strings.VERSION, 68, right=True),
)
MODEL_COLUMNS = (
    Column("model", strings.MODEL, 232, after_px=12, grows=True, paint=paint_names),
    Column("needs", strings.NEEDS, 90, right=True),
    Column("each", strings.EACH, 90, right=True),
    Column("state", strings.FIT, 210, before_px=16, paint=paint_state),
)

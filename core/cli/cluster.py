"""`draftlight cluster`: the machines that run one model together, looked at from this one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.console.arguments import readable_file
from core.cli.console.parser import add_command, add_model, add_quiet
from core.events import ClusterEnded, MachinesChecked
from core.settings.cluster import Cluster, cluster_of
from core.system.progress_line import ProgressLine

if TYPE_CHECKING:  # importing it loads MLX, which must be prepared before
    from core.engine.engine import Engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it takes."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = add_command(commands, "check", "whether a model runs over the machines, and what is missing", run)
    add_model(check)
    status = add_command(commands, "status", "which machines are there, and what they are", run)
    status.set_defaults(model="")
    for command in (check, status):
        command.add_argument("cluster", type=readable_file, metavar="FILE", help=_FILE)
        add_quiet(command)


_FILE = 'the machines, as JSON (docs/cluster.md): {"machines": [{"name": "studio", "address": "10.0.0.2"}]}'


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """The option of commands that can load a model over several machines."""
    parser.add_argument("--cluster", type=readable_file, metavar="FILE", help=f"run the model over {_FILE}")


def read_cluster(path: Path) -> Cluster:
    """Raises `SettingError` for what is no list of machines."""
    return cluster_of(path.read_bytes(), str(path))


def run(options: argparse.Namespace) -> int:
    """Look; exit status 0 only if nothing is missing. Raises `KeyFileError`, `ModelError`."""
    cluster = read_cluster(options.cluster)
    from core.models.runtime.runtime import prepare

    prepare()
    from core.cluster.loading import Gathering

    with ProgressLine(options.quiet) as line:
        line.say(f"Asking {len(cluster.machines)} machines", now=True)
        gathering = Gathering(cluster, options.model)
        checked = gathering.checked()
        gathering.close()
    print(report(checked, options.model))
    return 0 if checked.runs else 1


def report(checked: MachinesChecked, model: str) -> str:
    """What was found, a machine a line."""
    lines = []
    for rank, machine in enumerate(checked.machines):
        if not machine.reached:
            lines.append(f"{rank}  {machine.name}: {machine.problem} {machine.hint}".rstrip())
            continue
        memory = f"{machine.memory_bytes / 2**30:.0f} GB, gives {machine.limit_bytes / 2**30:.1f} GB"
        need = f", would hold {machine.need_bytes / 2**30:.1f} GB" if machine.need_bytes else ""
        versions = f"Draftlight {machine.version}, mlx {machine.mlx}, mlx-lm {machine.mlx_lm}"
        has = ", ".join(machine.backends)
        lines.append(f"{rank}  {machine.name}: {machine.chip}, {memory}{need}; {versions}; {has}")
        if machine.problem:
            lines.append(f"   {machine.problem} {machine.hint}".rstrip())
    lines += checked.problems
    if checked.runs:
        what = f"{model} runs" if model else "A model may run"
        lines.append(
            f"{what} over {len(checked.machines)} machines by {checked.backend}, split by {checked.split}."
        )
    else:
        lines.append("Nothing runs over these machines as they are.")
    return "\n".join(lines)


def load_over(engine: Engine, path: Path, model: str, line: ProgressLine) -> None:
    """Load `model` over the machines of a file. If the cluster ends, so does this process, with status 1."""
    from core.cluster.loading import Gathering

    def ended(event: ClusterEnded) -> None:
        line.clear()
        print(f"\ndraftlight: {event.message} {event.hint}".rstrip(), file=sys.stderr, flush=True)

    gathering = Gathering(read_cluster(path), model, ended, status=1)
    engine.use(gathering.load(lambda stage, fraction: line.say(stage), engine.make_room))

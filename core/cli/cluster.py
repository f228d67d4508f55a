"""`draftlight cluster`: the machines that run one model together, looked at from this one."""

from __future__ import annotations

import argparse
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.console.arguments import readable_file
from core.cli.console.parser import add_command, add_model, add_quiet
from core.errors import ClusterError
from core.events import ClusterEnded, MachinesChecked
from core.settings.cluster import FOLLOW_PORT, Cluster, cluster_of
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
    start = add_command(commands, "start", "start draftlight follow by ssh where it does not run", begin)
    start.set_defaults(model="")
    start.add_argument("--ssh", default="ssh", metavar="PROGRAM", help="what reaches them (default ssh)")
    start.add_argument(
        "--command",
        default="draftlight",
        metavar="PATH",
        help="what Draftlight is called there (default draftlight)",
    )
    for command in (check, status, start):
        command.add_argument("cluster", type=readable_file, metavar="FILE", help=_FILE)
        add_quiet(command)


_SSH_S, _START_S, _REACH_S, _LOOK_S = 30.0, 20.0, 3.0, 0.2
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
        with Gathering(cluster, options.model) as gathering:
            checked = gathering.checked()
    print(report(checked, options.model))
    return 0 if checked.runs else 1


def begin(options: argparse.Namespace) -> int:
    """Start what is not there, then look. Raises `ClusterError` for a machine where that fails."""
    from core.cluster.machine.addresses import host_and_port

    cluster = read_cluster(options.cluster)
    for machine in cluster.machines:
        host, port = host_and_port(machine.address, FOLLOW_PORT)
        if _listens(host, port):
            continue
        follow = shlex.join([options.command, "follow", "--listen", f"{host}:{port}"])
        # It goes on when the connection ends; its own secret's file is where it is looked for there.
        asked = [options.ssh, "-o", "BatchMode=yes", host, f"nohup {follow} >/dev/null 2>&1 </dev/null &"]
        try:
            done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SSH_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClusterError(
                f"{machine.name} ({host}) could not be reached by {options.ssh}: {error}.",
                f"Run there: {follow}",
            ) from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise ClusterError(
                f"{options.ssh} could not start draftlight follow on {machine.name}: {said}.",
                f"Run there: {follow}",
            )
        until = time.monotonic() + _START_S
        while not _listens(host, port) and time.monotonic() < until:
            time.sleep(_LOOK_S)
    return run(options)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _REACH_S).close()
    except OSError:
        return False
    return True


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

"""UI strings of the window of several machines."""

from __future__ import annotations

from collections.abc import Sequence

from app.gauges.figures import gigabytes
from app.session.strings import MACHINE

TITLE = "Run on Several Machines"
WHOSE_LIST = "Your list"
HERE = MACHINE[:1].upper() + MACHINE[1:]
ADD = "Add Machine"
CHECK = "Check"
CHECK_HELP = "Look whether the chosen model runs over these machines. Nothing is loaded."
RUN = "Run"
RUN_HELP = "Load the chosen model over these machines."
RUN_ALONE = "Run on This Machine"
WAIT = "An answer is being written. It can be loaded when that is done."

MACHINES = "Machines"
MACHINE_COLUMN = "Machine"
CHIP = "Chip"
MEMORY = "For models"
HOLDS = "Holds"
STEP = "Step"
VERSION = "Version"
STATE = "State"
LEADS = "Leads"
READY = "Ready"
AT_WORK = "At work"
BUSY = "Busy"
NOT_REACHED = "Not reached"
WRONG = "Not usable"
UNKNOWN = "Not checked"
CHECKING = "Checking…"

MODELS = "Models"
MODEL = "Model"
NEEDS = "Needs"
EACH = "On each"
FIT = "Runs on"
UNKNOWN_FIT = "Known after the first load"

NEW_MACHINE = "New machine"
ADD_IT = "Add"
CANCEL = "Cancel"
REMOVE = "Remove"
LEADER_NOTE = f"{HERE} leads: it receives the questions and always takes part."
TOGETHER = "Together"
SECRET = "Secret"
MAKE_SECRET = "Create Secret"
COPY_PATH = "Copy Path"
SHOW_FILE = "Show File"
FOLLOW = "On each other machine"
FOLLOW_NOTE = (
    "Install the same Draftlight there, with the same model folder. Copy the secret’s file to it, then start"
    " this with that machine’s own address:"
)
FOLLOW_COMMAND = "Command"
ITS_ADDRESS = "ADDRESS"
SUMMARY = "Result"
NOT_CHECKED = "Choose a model, then check whether it runs over these machines. Nothing is loaded for that."
NO_MACHINES = "Add the machines that are to run a model together with this one."
NO_WORKER = "The worker is not running, so nothing can be asked. Restart it in the chat window."


def follow_command(address: str) -> str:
    return f"draftlight follow --listen {address}"


def subtitle(count: int, running: str) -> str:
    """`count` includes this machine; `running` is the model that runs over them, if any."""
    machines = f"{HERE} and {_counted(count - 1, 'other')}" if count > 1 else f"{HERE} alone"
    return f"{machines}. {running} runs over them." if running else f"{machines}."


def secret_there(path: str) -> str:
    return f"It is in {path}. All machines need the same file. Keep it secret."


def secret_missing(path: str) -> str:
    return f"There is none in {path}. Make one here, or copy the one that another machine has made."


def of_bytes(gives_bytes: int, memory_bytes: int) -> str:
    return f"{gigabytes(gives_bytes)} of {memory_bytes / 2**30:.0f} GB"


def gb(size_bytes: int) -> str:
    return f"{gigabytes(size_bytes)} GB"


def versions(draftlight: str, mlx: str, mlx_lm: str, backends: Sequence[str]) -> str:
    has = ", ".join(backends) or "no connection"
    return f"Draftlight {draftlight}, mlx {mlx}, mlx-lm {mlx_lm}, {has}"


def runs_on(machines: int, of: int) -> str:
    """The number of available machines that hold a model; 0: all are too few."""
    if not machines:
        return f"Too large for {_counted(of, 'machine')}"
    return f"{HERE} alone" if machines == 1 else f"{machines} of {of} machines"


def runs(model: str, machines: int, each_bytes: int, backend: str, split: str) -> str:
    how = {"tensor": "each layer over all of them", "pipeline": "some layers on each"}.get(split, "")
    by = {"ring": "over TCP", "jaccl": "over Thunderbolt"}.get(backend, backend)
    parts = ", ".join(part for part in (how, by) if part)
    return f"{model} runs over these {machines} machines: about {gb(each_bytes)} on each, {parts}."


def all_reached(machines: int) -> str:
    return f"All {machines} machines are there. Choose a model and check it."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

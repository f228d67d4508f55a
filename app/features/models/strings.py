"""UI strings of the Models window and of the model menu."""

from __future__ import annotations

from collections.abc import Sequence

from app.gauges.figures import gigabytes
from app.session.strings import MACHINE

TITLE = "Models"
SEARCH = "Search or paste a name"
ADD = "Add from Disk…"
ADD_TITLE = "Choose a model folder"
LISTING = "Listing models…"
NO_MODELS = "No model is installed, and no suggested one fits."
NO_WORKER = "The engine is not running, so models cannot be listed. Restart it in the chat window."

MODEL = "Model"
TOKENIZER = "Tokenizer"
FIT = "Memory fit"
ON_MACHINE = f"On {MACHINE}"
DOWNLOADS = "Downloads"
SEARCH_GROUP = "Search"
ASKING = "Searching the hub…"
SEES = "Sees images"
GATED = "its owner asks you to accept terms first"
ON_DISK = "A folder on this machine. Its name is not sent to the hub."
NOT_ASKED = "Searching sends only this text to the hub"

FIT_WORDS = {"fits": "Fits", "tight": "Tight", "too-large": "Too large"}
FIT_ICONS = {"fits": "check", "tight": "info", "too-large": "x"}
UNLOAD = "Unload"
LOADED = "Loaded"
RELEASED = "Idle"
LOADING = "Loading"
STARTER = "starter model"
OTHER_APP = "in another app’s folder"
UNUSABLE = "Unusable"
UNKNOWN_FIT = "Known after the first load"
NO_DRAFTS = "None installed"

COMMANDS = {
    "load": "Load",
    "get": "Download",
    "search": "Search",
    "add": "Add",
    "pause": "Pause",
    "resume": "Resume",
    "cancel": "Cancel",
}
PAUSED = "Paused"
STARTING = "Contacting the hub"

MEMORY = "Memory"
WEIGHTS = "Weights"
DRAFT_MODEL = "Draft model"
WORKING = "Working space"
EYES = "Images, once a chat has one"
CONTEXT = "Context"
CONTEXT_TIP = "Memory is estimated for a context of this many tokens."
DRAFTS_TITLE = "Draft models it can use"
DRAFTS_NONE = "No other model is installed."
DRAFTS_NOTE = "Used by the drafter “Draft model”, and for choosing passages of long prompts."
DRAFTS_LOAD_FIRST = "Load this model to choose one."
SAME_TOKENIZER = "Same tokenizer, also scores long prompts"
SLOW = "Same tokenizer, slow to draft with"
NOT_SMALLER = "Same tokenizer, not smaller than the model itself"
DIFFERENT = "Different tokenizer, cannot draft here"
NOT_KNOWN = "Its tokenizer cannot be read, so it cannot draft here"
TOO_LARGE_BESIDE = "Same tokenizer, too large next to this model"
AT_START = "Load at Start"
IS_AT_START = "Loads at start"
SHOW_FOLDER = "Show the folder"
REMOVE = "Remove"
FORGET = "Remove from list"
ERASE = "Delete"
KEEP = "Cancel"
WAIT_FOR_ANSWER = "An answer is being written. It can be loaded when that is done."
NOTHING_CHOSEN = "Choose a model to see its memory need."
MODEL_LIST = "Models"
DETAIL = "The selected model"


def subtitle(count: int, disk_bytes: int, free_bytes: int, limit_bytes: int) -> str:
    here = f"{count:,} on {MACHINE}, {gigabytes(disk_bytes)} GB on disk, {gigabytes(free_bytes)} GB free"
    return f"{here}, memory limit {gigabytes(limit_bytes)} GB" if limit_bytes else here


def suggested_for(limit_bytes: int) -> str:
    return f"Suggested for {gigabytes(limit_bytes)} GB of memory"


# The rate that stated download times are for.
RATE_MBIT_S = 100


def download_time(size_bytes: int) -> str:
    minutes = max(1, round(size_bytes * 8 / (RATE_MBIT_S * 1e6) / 60))
    return f"{minutes} min at {RATE_MBIT_S} Mbit/s"


# The first page, while the starter is the only model.
DOWNLOAD_OFFERED = "Download"
USE_STARTER = "Use the Small Starter for Now"
CANCEL_DOWNLOAD = "Cancel Download"


def offer_title(name: str) -> str:
    return f"Start with {name}"


def offer_text(what: str, size_bytes: int, *, sees: bool) -> str:
    sentences = (
        f"The best model for the memory of {MACHINE}: good at {what}.",
        "It sees images." if sees else "",
        f"It is a download of {size(size_bytes)}, about {download_time(size_bytes)}.",
        "The small starter shows how everything works, but its answers are often wrong.",
    )
    return " ".join(filter(None, sentences))


def fetching_title(name: str) -> str:
    return f"Downloading {name}…"


FIRST_QUESTION = "You can send your first question now. It is answered as soon as the model is loaded."


def fetching_text(progress: str) -> str:
    return f"{progress}. {FIRST_QUESTION}" if progress else FIRST_QUESTION


def not_fetched(name: str, reason: str) -> str:
    said = f"{name} was not downloaded: {reason}" if reason else f"{name} was not downloaded."
    return f"{said} You can resume it in Models."


def size(size_bytes: int) -> str:
    if size_bytes < 2**30 / 10:
        return f"{size_bytes / 2**20:,.0f} MB"
    return f"{gigabytes(size_bytes)} GB"


def bits(count: int, dtype: str) -> str:
    return f"{count}-bit" if count else dtype


def context(tokens: int) -> str:
    return f"{tokens:,} context"


def joined(parts: Sequence[str]) -> str:
    return " · ".join(part for part in parts if part)


def spare(size_bytes: int) -> str:
    return f"{size(size_bytes)} spare" if size_bytes >= 0 else f"{size(-size_bytes)} over"


def drafts_for(names: Sequence[str]) -> str:
    return f"Drafts for {', '.join(names)}"


def loading(fraction: float | None) -> str:
    return LOADING if fraction is None else f"{LOADING} {fraction:.0%}"


def arrived(done_bytes: int, total_bytes: int) -> str:
    return f"{size(done_bytes)} of {size(total_bytes)}"


def pace(bytes_per_s: float, seconds_left: float | None) -> str:
    said = f"{bytes_per_s / 2**20:.1f} MB/s"
    return said if seconds_left is None else f"{said} · {left(seconds_left)}"


def left(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 5400 else f"{seconds / 3600:.1f} h left"


def not_found(text: str) -> str:
    return f"Nothing for MLX was found for “{text}”."


def ask_for(text: str) -> str:
    return f"Search the hub for “{text}”"


def downloads(count: int) -> str:
    return f"downloaded {count:,} times" if count else ""


def memory_sum(need_bytes: int, limit_bytes: int) -> str:
    return f"{gigabytes(need_bytes)} of {gigabytes(limit_bytes)} GB"


def cache_at(tokens: int, bits: str = "") -> str:
    return f"Cache at {tokens:,} tokens, {bits} bits" if bits else f"Cache at {tokens:,} tokens"


def on_disk(
    precision: str, size_bytes: int, tokens_per_s: float, *, has_template: bool = True, sees: bool = False
) -> str:
    said = f"{precision}, {size(size_bytes)} on disk." if precision else f"{size(size_bytes)} on disk."
    if sees:
        said = f"{said} {SEES}."
    if not has_template:
        said = f"{said} No chat template: the model continues plain text."
    return f"{said} {tokens_per_s:.1f} tok/s on your last answer." if tokens_per_s else said


def exactness(found: str) -> str:
    return f"With “Exact”: {found}." if found else ""


def readings(found: str) -> str:
    return f"Best reading of long texts: {found}; in nats per token of right answers." if found else ""


HEADS_TITLE = "Heads that draft for it"


def head(label: str, size_bytes: int, gain: float) -> str:
    said = f"{label[0].upper()}{label[1:]}" + (f", {size(size_bytes)}" if size_bytes else "")
    return f"{said}. Adds {gain:.2f} tokens per step on {MACHINE}." if gain else said


def ask_erase(name: str, size_bytes: int) -> str:
    return f"Delete {name}? {size(size_bytes)} will be freed."


def ask_cancel(name: str, arrived: str) -> str:
    return f"Delete the download of {name}? {arrived} has arrived."


def ask_forget(name: str) -> str:
    return f"Remove {name} from the list? Its folder stays where it is."


def ask_forget_all(folder: str) -> str:
    return f"Remove {folder} and its models from the list? The folder stays where it is."


# The menu under the chat's title.
ALL_MODELS = "All Models…"
CANNOT_LOAD = "cannot be loaded"

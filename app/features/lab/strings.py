"""The Lab's texts."""

from __future__ import annotations

import time
from pathlib import Path

from app.gauges.figures import seconds, speed
from core.settings.declaration import find

TITLE = "Lab"
SUBTITLE = "Nothing is measured yet"
MODEL = "Model"
CHOOSE_FOLDER = "Choose Folder…"
DRAFTERS = "Drafters"
PROMPTS = "Prompts"
OWN_PROMPTS = "Choose File…"
PROMPTS_FILTER = "Prompts (*.jsonl)"
RESULTS_FILTER = "Results (*.json)"
RUNS = "Runs"
EACH_PROMPT = "Each prompt"
TIMES = "times"
AT_MOST = "At most"
TOKENS = "tokens"
EXACTNESS = "Exactness"
KEEP_SHARE = "Keep share"
LONG_PROMPT = "Long prompt"
KEEP_SAYS = "Reads prompts of this length densely and sparsely. Slow."
RUN = "Run Sweep"
STOP = "Stop"
STOPPING = "Stopping"
PAUSED = "Paused while the chat is answered"
STARTING = "Loading the model a second time"
QUIET = "Pauses while the chat is answered. Figures are best on a machine that does nothing else."
OPEN = "Open…"
EXPORT = "Export…"
PAST = "Past sweeps"
NOW = "This sweep"
OPENED = "Opened file"
OPEN_TITLE = "Open Results"
EXPORT_TITLE = "Export Results"
NEEDS_DRAFT_MODEL = "a cut-down copy of the model drafts"
NO_HEAD = "This model’s files have no MTP head."
NOTHING_CHOSEN = "Choose at least one drafter and one kind of prompt."

SPEED = "Speed against plain decoding"
SPEED_SAYS = "Median of the pairs, thin lines show the spread"
PARITY = "Same text as plain decoding"
PLACES = "Accepted at each draft position"
PLACES_SAYS = "A longer draft pays only while this stays high"
PLACE = "Position in the draft"
TURNS = "Speed over a chat"
TURNS_SAYS = "Tokens a second, turn by turn"
TURN = "Turn"
KEEPS = "What keeping less costs"
KEEPS_SAYS = "Seconds to the first token; same next token"
SHARE = "Share of the prompt kept"
ALL = "All"
PLAIN = "Plain"
EMPTY = "Not measured yet"
SHOW_THEM = "Show Differences"

DIFFERENCE_TITLE = "Differing Texts"
PLAIN_TEXT = "Plain"
DRAFTED_TEXT = "Drafted"
PREVIOUS = "Previous"
NEXT = "Next"
CLOSE = "Close"
NO_TEXT = "The file does not hold the texts."
SAME = "the same"

KINDS = {"passage": "Passage", "code": "Code", "json_rag": "JSON", "editing": "Editing chat"}


def kind_of(kind: str) -> str:
    """What a class of prompts is called."""
    return KINDS.get(kind) or kind.replace("_", " ").capitalize()


def drafter_of(name: str) -> str:
    """What a drafter is called; a configuration of a bench keeps its own words."""
    return find("drafting.drafter").labels.get(name, name)


SHORT = {
    "ngram-simple": "Simple",
    "ngram-mod": "Mod",
    "frequency": "Freq.",
    "cacheback": "Cache.",
    "draft-model": "Draft",
    "mtp": "MTP",
}
STARTER = "Starter model"


def short_drafter_of(name: str) -> str:
    """Where there is little room."""
    return SHORT.get(name) or drafter_of(name)


def prompts(count: int, turns: int) -> str:
    if turns:
        return "1 turn" if turns == 1 else f"{turns} turns"
    return str(count)


def when(at_s: float) -> str:
    moment = time.localtime(at_s)
    return f"{moment.tm_mday} {time.strftime('%B, %H:%M', moment)}"


def head(model: str, answers: int, took_s: float, ended: bool, at_s: float, *, runs: bool = False) -> str:
    """The line above a sweep's results. `runs`: the sweep is in progress; `ended`: it was completed."""
    said = f"Sweep of {when(at_s)}. {model}"
    if answers:
        said += f", {answers:,} answers in {duration(took_s)}"
    if runs:
        return f"{said}, running"
    return said if ended else f"{said}, not ended"


_JOINED = "\u00a0"  # a space at which no line ends


def duration(length_s: float) -> str:
    if length_s < 90:
        return f"{length_s:.0f}{_JOINED}s"
    minutes, rest = divmod(round(length_s), 60)
    words = (minutes, "min", rest, "s") if minutes < 60 else (minutes // 60, "h", minutes % 60, "min")
    return _JOINED.join(map(str, words))


def plan(answers: int, readings: int, about_s: float | None) -> str:
    said = f"{answers:,} answers" + (f" and {readings} long prompts" if readings else "")
    if about_s is None:
        return f"{said}. How long it takes shows after the first."
    return f"{said}, about {duration(about_s)}"


def progress(done: int, total: int, left_s: float | None) -> str:
    said = f"{done:,} of {total:,}"
    return said if left_s is None else f"{said}, about {duration(left_s)} left"


def ratio(value: float) -> str:
    return f"{value:.2f}"


def plain_speed(tokens_per_s: float) -> str:
    return f"{speed(tokens_per_s)} tok/s"


def identical(equal: int, total: int) -> str:
    return f"{equal:,} of {total:,} answers are identical" if total else EMPTY


def differ(count: int, close: int) -> str:
    if not count:
        return "All outputs match."
    verb = "differs" if count == 1 else "differ"
    if close == count:
        return f"{count} {verb} after a close call."
    return f"{count} {verb}, {count - close} of them not after a close call." if close else f"{count} {verb}."


def mark(kind: str, drafter: str, prompt: int, number: int) -> str:
    return f"{kind_of(kind)} {prompt + 1}, {drafter_of(drafter)}, run {number}"


def difference(token: int, margin: float | None, close: bool) -> str:
    said = f"From token {token + 1:,} on."
    if margin is None:
        return f"{said} One is longer."
    call = "a close call" if close else "not a close call"
    return f"{said} The plain token was ahead by {margin:.2g}: {call}."


def speeds_described(rows: list[tuple[str, str, float, float, float]]) -> str:
    return "; ".join(
        f"{drafter_of(drafter)} on {kind_of(kind)}: {middle:.2f} times plain, {least:.2f} to {most:.2f}"
        for drafter, kind, middle, least, most in rows
    )


def curve_described(name: str, values: list[str]) -> str:
    return f"{name}: {', '.join(values)}"


def keep_described(keep_pct: float, ttft_s: float, agreement: float | None) -> str:
    said = f"{keep_pct:g}%: {seconds(ttft_s)} s"
    return said if agreement is None else f"{said}, {agreement:.0%} the same"


OTHER_FOLDER = "Choose another folder."


def exported(name: str, files: int) -> str:
    return f"{files} files are in “{name}”."


def folder_name(reference: str) -> str:
    """What to call a model by its folder."""
    if reference == "starter":
        return STARTER
    return Path(reference).name or reference

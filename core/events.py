"""The messages between window and worker: commands down, events up.

Wire form: one JSON object a line, tagged by `type` (the struct's name in snake case).
Times end in `_s` and are seconds; times of events are measured from the moment the worker
took up the request. Token counts end in `_tokens` or are plain nouns. All are frozen.

Which of them follow each other:

    load_model  → load_progress* → model_loaded | failed
    generate    → prefill_progress* → (reading_map → prefill_progress*)? → (token | gauges)*
                  → finished | failed
    cancel      → the running generate ends with finished(reason="cancelled")
    unload_model→ model_unloaded
    count_tokens→ token_count | failed
    list_tables → table_list | failed
    save_tables, load_tables, reset_table, export_table, import_table → table_done | failed
    (always)    → heartbeat, about once a second
    (tables)    → table_status after a model was loaded, after an answer that taught them, after a save
"""

from __future__ import annotations

import re
from typing import Literal, Union

import msgspec
from msgspec import Struct

from core.errors import DraftlightError, Kind, PromptTooLongError, ProtocolError
from core.settings import Settings, assign_all

PROTOCOL = 1

Origin = Literal["accepted", "bonus", "normal"]
Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "cancelled"]
Activity = Literal["empty", "loading", "ready", "prefilling", "decoding"]
TableMoment = Literal["warm", "cold", "learned", "saved", "failed"]
TableAction = Literal["save", "load", "reset", "export", "import"]
PrefillPhase = Literal["scoring", "reading"]
ReadingWay = Literal["dense", "sparse"]
ScorerName = Literal["", "draft-model", "early-layers", "lexical"]


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Wire(Struct, frozen=True, tag_field="type", tag=_tag, forbid_unknown_fields=True):
    """A message with its tag."""


# ---- what a request is made of


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A document that was pasted or dropped beside a message. `text` is the whole of it.

    `tokens` is what a worker counted of it once, for showing; 0 if nobody did.
    """

    name: str
    text: str
    tokens: int = 0


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. Attachments are put before `content` when the prompt is rendered."""

    role: Role
    content: str
    attachments: tuple[Attachment, ...] = ()


# ---- commands: window → worker


class LoadModel(_Wire, frozen=True):
    """Load `model`: `starter`, a folder, or a hub name. Replaces the loaded one only if it succeeds."""

    model: str


class UnloadModel(_Wire, frozen=True):
    """Free the model and its caches."""


class Generate(_Wire, frozen=True):
    """Answer `messages` (the last one is the user's). `request` is any id that is new."""

    request: str
    messages: tuple[Message, ...]
    settings: Settings = Settings()


class Cancel(_Wire, frozen=True):
    """Stop answering `request` within one step or one prefill chunk. Unknown ids are ignored."""

    request: str


class CountTokens(_Wire, frozen=True):
    """Count the tokens of `text` with the loaded model's tokenizer."""

    request: str
    text: str


class ListTables(_Wire, frozen=True):
    """Every table in memory and on disk."""

    request: str


class SaveTables(_Wire, frozen=True):
    """Save what the loaded family's tables have learned, now."""

    request: str


class LoadTables(_Wire, frozen=True):
    """Read the loaded family's saved tables again; what was learned since the last save is dropped.

    `previous` takes the generation before the last save and makes it the current one.
    """

    request: str
    previous: bool = False


class ResetTable(_Wire, frozen=True):
    """Forget all that was learned for `family` (a fingerprint): in memory, on disk, older generations too."""

    request: str
    family: str


class ExportTable(_Wire, frozen=True):
    """Write a copy of one table to `path`, which must not exist unless `replace` is set."""

    request: str
    family: str
    n: int
    slots: int
    path: str
    replace: bool = False


class ImportTable(_Wire, frozen=True):
    """Take the table file at `path` as the table of its family; the one it had becomes the previous."""

    request: str
    path: str


class Shutdown(_Wire, frozen=True):
    """End the process with status 0. Closing the worker's stdin does the same."""


Command = Union[
    LoadModel,
    UnloadModel,
    Generate,
    Cancel,
    CountTokens,
    ListTables,
    SaveTables,
    LoadTables,
    ResetTable,
    ExportTable,
    ImportTable,
    Shutdown,
]


# ---- what events are made of


class ModelInfo(Struct, frozen=True):
    """The loaded model. `family` is the tokenizer's fingerprint, `family_name` what people call it.

    `speculates` is False where rollback cannot be exact; `why_not` then says why.
    """

    name: str
    path: str
    family: str
    family_name: str
    architecture: str
    dtype: str
    quantisation: str
    parameters: int
    size_bytes: int
    context_tokens: int
    vocabulary: int
    layers: int
    speculates: bool
    why_not: str = ""
    load_s: float = 0.0


class PositionStat(Struct, frozen=True):
    """Of the drafts that reached this place in the block: how many were tested, how many accepted."""

    tested: int
    accepted: int


class Occupancy(Struct, frozen=True):
    """How full the drafter's index or table is. `capacity` 0 means it keeps none."""

    used: int = 0
    capacity: int = 0


class TableFigures(Struct, frozen=True):
    """Counters of one shared table since it was made, earlier runs of Draftlight included.

    `used` of `slots` hold a guess; `inserts` counts all writes, `overwrites` those that replaced a
    different guess; of `lookups`, `hits` found one. `tested` and `accepted` count drafted tokens.
    """

    used: int = 0
    slots: int = 0
    inserts: int = 0
    overwrites: int = 0
    lookups: int = 0
    hits: int = 0
    tested: int = 0
    accepted: int = 0


class TableTeacher(Struct, frozen=True):
    """A model and how many entries were written or changed while it was loaded."""

    model: str
    entries: int


class TableDay(Struct, frozen=True):
    """One day (like 2026-11-21) on which a table changed: its entries then, the day's tested and accepted."""

    day: str
    used: int
    tested: int
    accepted: int


class TableInfo(Struct, frozen=True):
    """One table: of a tokenizer family, for windows of `n` tokens.

    `loaded`: in memory, and `unsaved` entries were written or changed since it was last saved.
    `size_bytes` on disk, 0 if it was never saved; `updated_s` (Unix time) is when it was. `days` are
    the latest, oldest first. `why_not_saved` says why it is only read here; empty if it is saved.
    """

    family: str
    family_name: str
    n: int
    figures: TableFigures
    learned_from: tuple[TableTeacher, ...] = ()
    days: tuple[TableDay, ...] = ()
    created_s: float = 0.0
    updated_s: float = 0.0
    size_bytes: int = 0
    has_previous: bool = False
    loaded: bool = False
    unsaved: int = 0
    why_not_saved: str = ""


class Stats(Struct, frozen=True):
    """Everything measured about one answer.

    Always: tokens = accepted + bonus + normal, steps = bonus + normal. The stop token counts
    as a token (with empty text). `tested` counts drafted tokens that the walk reached: the
    accepted ones and the first rejected one of each step; `drafted` counts all proposed;
    `rechecked` counts close calls that a pass of width 1 decided.
    `mean_per_step` is MAT: tokens ÷ steps. `tokens_per_s` is decode speed: the tokens after
    the first, over the time from the first to the last. `read_tokens` is what prefill ran
    through the model now, `reused_tokens` what the cache already held, `skipped_tokens` what
    the model has not read, now or in an earlier turn: prompt = reused + read + skipped.
    Of this answer's sparse reading: `scored_tokens` were scored in `score_s` (part of
    `prefill_s`), `kept_tokens` of them were chosen to be read; all 0 where all was read.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    read_tokens: int = 0
    skipped_tokens: int = 0
    scored_tokens: int = 0
    kept_tokens: int = 0
    tokens: int = 0
    accepted: int = 0
    bonus: int = 0
    normal: int = 0
    steps: int = 0
    drafted: int = 0
    tested: int = 0
    rechecked: int = 0
    acceptance: float = 0.0
    mean_per_step: float = 0.0
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    score_s: float = 0.0
    decode_s: float = 0.0
    total_s: float = 0.0
    tokens_per_s: float = 0.0
    positions: tuple[PositionStat, ...] = ()
    occupancy: Occupancy = Occupancy()
    draft_us_median: float = 0.0
    draft_us_p99: float = 0.0
    context_used_tokens: int = 0
    context_tokens: int = 0
    memory_bytes: int = 0
    memory_peak_bytes: int = 0


class Change(Struct, frozen=True):
    """Something that was asked for and did not happen: the setting's key, both values, and why."""

    setting: str
    asked: str
    used: str
    reason: str


class Effective(Struct, frozen=True):
    """What really ran. `changes` is empty when everything was done as asked.

    `gate` says whether drafting went on to the end, and why; empty if nothing drafts.
    `reading` says how the prompt was read, `reading_reason` why, and `scorer` who chose the
    passages (empty where all was read).
    """

    model: str
    dtype: str
    drafter: str
    settings: Settings
    gate: str = ""
    changes: tuple[Change, ...] = ()
    reading: ReadingWay = "dense"
    reading_reason: str = ""
    scorer: ScorerName = ""


class Passage(Struct, frozen=True):
    """A stretch of the prompt that is kept or skipped as a whole: tokens `start` to `end`, end-exclusive.

    `score` is 0 to 1 within this map; `kept` also where a rule and not the score kept it.
    `source` counts the attachments of all messages from 0; there the passage is the characters
    `first_char` to `last_char` (end-exclusive) of its text. A passage of no attachment's text
    has source −1.
    """

    start: int
    end: int
    kept: bool
    score: float
    source: int = -1
    first_char: int = 0
    last_char: int = 0


# ---- events: worker → window


class Hello(_Wire, frozen=True):
    """The first line of a worker."""

    pid: int
    protocol: int
    version: str
    mlx: str
    mlx_lm: str
    device: str
    blas: str


class LoadProgress(_Wire, frozen=True):
    """`fraction` is None while it cannot be known. `stage` is a plain phrase to show."""

    model: str
    stage: str
    fraction: float | None = None


class ModelLoaded(_Wire, frozen=True):
    """The model answers requests from now on."""

    info: ModelInfo


class ModelUnloaded(_Wire, frozen=True):
    """No model is loaded."""


class PrefillProgress(_Wire, frozen=True):
    """Reading the prompt: `done_tokens` of `total_tokens` read, `reused_tokens` needed no reading.

    Before a sparse reading comes the phase `scoring`: `scored_tokens` of `total_tokens` new ones
    were looked at, none is read (`done_tokens` is 0). In the phase `reading` after it
    `total_tokens` counts what will be in the cache, and `kept_tokens` (0 where all is read) how
    much of that was chosen to be read. `seconds_left` is until the end of the phase.
    """

    request: str
    done_tokens: int
    total_tokens: int
    reused_tokens: int
    seconds_left: float | None = None
    phase: PrefillPhase = "reading"
    scored_tokens: int = 0
    kept_tokens: int = 0


class ReadingMap(_Wire, frozen=True):
    """What a sparse reading will read, sent once it is chosen and before it is read.

    `passages` cover, in order and without gaps, the tokens that are new in this prompt of
    `prompt_tokens`; `read_tokens` of them will be read.
    """

    request: str
    scorer: ScorerName
    prompt_tokens: int
    read_tokens: int
    passages: tuple[Passage, ...]


# Of plain values only, and by the ten thousand: the garbage collector need not look at them.
class Token(_Wire, frozen=True, gc=False):
    """One token of the answer, in order, once its text is certain.

    The concatenated texts are the answer. A token whose bytes are finished by a later one has
    empty text. `position` counts the answer's tokens from 0, `step` its model steps from 1.
    `draft_index` (from 1) and `draft_length` say where in its step's draft the token stood;
    both are 0 for tokens that were not drafted. `time_s` is when its step was done.
    """

    request: str
    id: int
    text: str
    origin: Origin
    step: int
    position: int
    draft_index: int = 0
    draft_length: int = 0
    time_s: float = 0.0


class Gauges(_Wire, frozen=True):
    """Live figures while an answer is written, about four times a second.

    `tokens_per_s` is over the last two seconds. `table` is the shared table's, where one is asked.
    """

    request: str
    tokens_per_s: float
    ttft_s: float
    tokens: int
    accepted: int
    tested: int
    acceptance: float
    mean_per_step: float
    positions: tuple[PositionStat, ...]
    occupancy: Occupancy
    memory_bytes: int
    context_used_tokens: int
    context_tokens: int
    table: TableFigures | None = None


class Finished(_Wire, frozen=True):
    """The end of an answer, whatever ended it."""

    request: str
    reason: FinishReason
    stats: Stats
    effective: Effective


class TokenCount(_Wire, frozen=True):
    """Answer to `count_tokens`."""

    request: str
    tokens: int


class TableStatus(_Wire, frozen=True):
    """What became of the loaded family's tables, unasked.

    `moment`: `warm` and `cold` after a model was loaded (with saved tables, without any), `learned`
    after an answer, `saved` and `failed` after a save. `calibrated`: what `auto` learned about its
    guesses is there, too. `notes` are sentences to show: files set aside, why nothing is saved.
    """

    moment: TableMoment
    family: str
    family_name: str
    tables: tuple[TableInfo, ...] = ()
    calibrated: bool = False
    took_s: float = 0.0
    notes: tuple[str, ...] = ()


class TableList(_Wire, frozen=True):
    """Answer to `list_tables`: the loaded family's first, then by name.

    `folder` is where they are kept, `set_aside` the files in it that could not be used.
    """

    request: str
    folder: str
    tables: tuple[TableInfo, ...]
    set_aside: tuple[str, ...] = ()


class TableDone(_Wire, frozen=True):
    """A table command is done. `entries` were saved, loaded, removed, exported or imported.

    `files` counts what was written or removed. `path` is where an export went or an import came from.
    """

    request: str
    action: TableAction
    family: str
    family_name: str
    entries: int
    files: int
    took_s: float
    path: str = ""
    notes: tuple[str, ...] = ()


class Failed(_Wire, frozen=True):
    """A command failed; the worker lives on. `request` is empty if it belongs to none.

    `command` names the command type that failed (`load_model`, `generate` …). `over_tokens` is
    by how much a prompt is too long; 0 for every other failure.
    """

    request: str
    command: str
    kind: Kind
    code: str
    message: str
    hint: str = ""
    over_tokens: int = 0


class Heartbeat(_Wire, frozen=True):
    """Sign of life of the process. `stalled_s`: seconds since the main thread last moved on."""

    activity: Activity
    stalled_s: float
    memory_bytes: int
    memory_limit_bytes: int


Event = Union[
    Hello,
    LoadProgress,
    ModelLoaded,
    ModelUnloaded,
    PrefillProgress,
    ReadingMap,
    Token,
    Gauges,
    Finished,
    TokenCount,
    TableStatus,
    TableList,
    TableDone,
    Failed,
    Heartbeat,
]

_encoder = msgspec.json.Encoder()
_command_decoder: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(message: Command | Event) -> bytes:
    """One line, newline included. JSON escapes newlines inside strings, so a line is a message."""
    return _encoder.encode(message) + b"\n"


def decode_command(line: bytes) -> Command:
    """A command from one line.

    Raises `SettingError` naming the setting and what it takes, or `ProtocolError`.
    """
    try:
        return _command_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _raise_for_settings(line)
        raise ProtocolError(f"This line is not a command: {_excerpt(line)} ({error}).") from None


def decode_event(line: bytes) -> Event:
    """An event from one line. Raises `ProtocolError`."""
    try:
        return _event_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"This line is not an event: {_excerpt(line)} ({error}).") from None


def failure(error: BaseException, *, command: str, request: str = "") -> Failed:
    """`error` as an event. Errors that are not ours become internal ones with their type named."""
    if isinstance(error, DraftlightError):
        over = error.tokens - error.limit_tokens if isinstance(error, PromptTooLongError) else 0
        return Failed(request, command, error.kind, error.code, error.message, error.hint, over)
    return Failed(
        request,
        command,
        "internal",
        "internal",
        f"Draftlight hit an error of its own: {type(error).__name__}: {error}.",
        "The details are in the worker's log.",
    )


def _raise_for_settings(line: bytes) -> None:
    """If only the settings of a generate command are wrong, say which and what they take."""
    try:
        groups = msgspec.json.decode(line)["settings"]
        pairs = [(f"{g}.{f}", value) for g, group in groups.items() for f, value in group.items()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError, KeyError, TypeError):
        return
    assign_all(Settings(), pairs)


def _excerpt(line: bytes) -> str:
    text = line[:120].decode("utf-8", "replace").strip()
    return f"“{text}…”" if len(line) > 120 else f"“{text}”"

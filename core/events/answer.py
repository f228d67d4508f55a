"""An answer: its request, with conversation, settings and options; prefill progress, tokens, statistics."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from core.answer_format import AnswerFormat
from core.events.tables import TableUse
from core.events.wire import Wire
from core.settings import Settings

Role = Literal["system", "user", "assistant", "tool"]
GrammarKind = Literal["json_object", "json_schema", "tool_calls"]

# The id of a token that a person wrote.
TYPED = -1
# The least id of an image's row in a prompt; the greatest is 2^31 − 1. No vocabulary and no table has such
# ids.
FIRST_IMAGE_ROW = 1 << 24
# More than images of `core.documents.limits` have.
_MOST_SIDE_PX = 1 << 17


class LeftOut(Struct, frozen=True, forbid_unknown_fields=True):
    """`count` parts of a file that its text leaves out, marks or guesses.

    `kind` is one of `core.documents.limits.Kind`; `place` says where, such as `page 3` or the name of a
    sheet, and may be empty.
    """

    kind: str
    count: int = 1
    place: str = ""


class Scans(Struct, frozen=True, forbid_unknown_fields=True):
    """The `pages` of a PDF that have no text: their numbers from 1, ascending.

    They can be drawn while the file at `path` (absolute) has this `hash`: SHA-256, as hexadecimal digits.
    """

    path: str
    hash: str
    pages: tuple[int, ...]


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A document attached to a message, with its full text. `tokens`: for display; 0 if not counted.

    `left_out` lists parts of the file that the text lacks, `scans` pages that a vision model may read.
    `pages`: the characters before each page, ascending; empty if the format has no pages, or if unknown.
    """

    name: str
    text: str
    tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()
    scans: Scans | None = None
    pages: tuple[int, ...] = ()


class Image(Struct, frozen=True, forbid_unknown_fields=True):
    """An image of a message: a file on this machine, as `core.documents.images.describe` found it.

    - `path`: absolute. `hash`: SHA-256 of the upright image's size and pixels, as hexadecimal digits; a file
      with other pixels is refused. `width`, `height`: of the upright image, in pixels.
    - `at`: the number of characters of the message's content before the image.
    - `left_out`: what the pixels do not have of the file, such as later frames.
    - `scan`, `page`: of a page of a PDF, its file's `Scans.hash` and its number. Such an image comes before
      the message's content, under its name. Empty and 0: another image.
    """

    name: str
    path: str
    hash: str
    width: Annotated[int, Meta(ge=1, le=_MOST_SIDE_PX)]
    height: Annotated[int, Meta(ge=1, le=_MOST_SIDE_PX)]
    at: Annotated[int, Meta(ge=0)] = 0
    left_out: tuple[LeftOut, ...] = ()
    scan: str = ""
    page: Annotated[int, Meta(ge=0)] = 0


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a function by the model. `arguments`: a JSON object as text."""

    id: str
    name: str
    arguments: str


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call. `parameters`: the JSON schema of its arguments as text."""

    name: str
    description: str = ""
    parameters: str = "{}"


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. The prompt contains the attachments before `content`, and images within it (`Image.at`).

    An assistant's turn may have `tool_calls`, and a `thought` that is not part of its `content`; a turn with
    the role `tool` is the result of the call `tool_call_id`.
    """

    role: Role
    content: str
    attachments: tuple[Attachment, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    thought: str = ""
    images: tuple[Image, ...] = ()


class Grammar(Struct, frozen=True, forbid_unknown_fields=True):
    """Required form of an answer: any JSON object, JSON by the schema `text`, or text with calls.

    A call is JSON by the schema `text` on a separate line between the marks `begin` and `end`. `drafts`:
    forced tokens are drafted.
    """

    kind: GrammarKind
    text: str = ""
    drafts: bool = True
    begin: str = ""
    end: str = ""

    @property
    def begins_at_once(self) -> bool:
        """Whether the grammar applies from the first token on, without a thought before it."""
        return self.kind != "tool_calls"


class Generate(Wire, frozen=True):
    """Answers `messages`, of which the last one is the user's. `request`: a new id.

    - `isolated` (`apart` on the wire): uses a separate cache and empty tables, and keeps and learns nothing.
    - `continuation` (`begun` on the wire): ids of an interrupted answer, without a stop token. The answer
      continues after them as if never interrupted; events contain only new tokens, counted from 0.
    - `continuation_texts` (`begun_texts` on the wire): the texts of these tokens, if a person edited the
      answer. Those with the id −1 are the person's, an empty one is a deletion, and the model continues as if
      it had written them.
    - `raw`: the only message's content is the prompt, without a chat template.
    - `tools`: declared through the chat template.
    - `stops`: the answer ends before the first occurrence of one of these texts.
    - `prediction`: the probable answer; affects only the speed.
    - `logit_bias`: added to the logits of token ids.
    - `stop_repeating`: the answer ends when it repeats itself (`core.decoding.repetition`).
    - `chat`: the chat's id, under which its cache may be saved on disk (`prefill.save`). Empty: it is not.
    - `top_logprobs`: number of most probable tokens reported with each token's logprob; None reports none.
    - `model`: the reference of the model that answers; another loaded one is replaced. Empty: the loaded one.
    """

    request: str
    messages: tuple[Message, ...]
    settings: Settings = Settings()
    isolated: bool = field(default=False, name="apart")
    continuation: tuple[int, ...] = field(default=(), name="begun")
    raw: bool = False
    tools: tuple[Tool, ...] = ()
    stops: tuple[str, ...] = ()
    prediction: str = ""
    grammar: Grammar | None = None
    logit_bias: dict[int, float] = field(default_factory=dict)
    top_logprobs: int | None = None
    chat: str = ""
    continuation_texts: tuple[str, ...] = field(default=(), name="begun_texts")
    stop_repeating: bool = False
    model: str = ""


class Cancel(Wire, frozen=True):
    """Stops `request`: one that waits at once, an answer within one step or one prefill chunk.

    Unknown ids are ignored.
    """

    request: str


class TakeTurn(Wire, frozen=True):
    """Waits for the turn of `request` like a `Generate`, then loads `model`, unless it is loaded.

    A `turn_taken` follows. No other answer is begun then until the `Generate` of the same request has ended,
    or its `Cancel` comes; other commands are carried out.
    """

    request: str
    model: str


class CountTokens(Wire, frozen=True):
    """Counts the tokens of `text`, or of the rendered `prompt` or of an `image` in one if given, with the
    loaded model. Fails for an image if the model cannot see.
    """

    request: str
    text: str = ""
    prompt: Generate | None = None
    image: Image | None = None


class ReadingPace(Wire, frozen=True):
    """How fast the model reads on this machine, fitted to timed chunks.

    `token_s`: seconds a token; `attention_s`: seconds more for each token before it in the context.
    """

    token_s: float
    attention_s: float

    def seconds(self, tokens: float, context_tokens: float = 0) -> float:
        """Predicted seconds for reading `tokens` after `context_tokens` others."""
        return tokens * (self.token_s + self.attention_s * (context_tokens + tokens / 2))


class TokenCount(Wire, frozen=True):
    """Answer to `count_tokens`; `estimated` for a text much longer than the model's context.

    `pace`: None until enough chunks were timed. `scaled_px`: of an image, width and height that it is scaled
    to; its `tokens` include those that the template writes around its rows.
    """

    request: str
    tokens: int
    pace: ReadingPace | None = None
    estimated: bool = False
    scaled_px: tuple[int, int] | None = None


RequestCommand = Generate | TakeTurn | Cancel | CountTokens
RequestEvent = TokenCount


# ---- events of an answer


class Queued(Wire, frozen=True):
    """The turn of `request` comes after `ahead` answers, or has come: 0. `loads`: its model is loaded."""

    request: str
    ahead: int
    loads: bool = False


Origin = Literal["accepted", "bonus", "normal"]
# Source of a drafted token: the preceding text, earlier rankings of the model, a table of the tokenizer
# family, the model's head, a draft model, a predicted answer, a grammar.
DraftSource = Literal["", "n-gram", "ranking", "table", "head", "draft model", "prediction", "grammar"]
FinishReason = Literal["stop", "length", "cancelled", "repetition"]


class PositionStat(Struct, frozen=True):
    """Number of drafted tokens at one block position that were tested, and that were accepted."""

    tested: int
    accepted: int


class Occupancy(Struct, frozen=True):
    """Entries of the drafter's index or table. `capacity` 0: it has none."""

    used: int = 0
    capacity: int = 0


class Stats(Struct):
    """Measurements of one answer, which fills them in while it is written.

    tokens = accepted + bonus + normal; steps = bonus + normal; prompt = reused + read + skipped. The stop
    token counts as a token with empty text, and so do tokens removed by a stop text.

    - `drafted`: all proposed tokens. `tested`: those that the walk reached: the accepted ones and the first
      rejected one of each step.
    - `forced`: accepted tokens that were drafted because a grammar allowed nothing else.
    - `mean_per_step`: MAT, tokens ÷ steps. `tokens_per_s`: decode speed, from the first token to the last.
      `plain_tokens_per_s`: the speed without drafts, of recent plain steps or as measured before; 0 if
      unknown, or without a drafter.
    - `prefill_s`, `ttft_s`, `total_s`: from the request on, with chat template and tokenizer.
    - `read_tokens`: processed by this prefill. `reused_tokens`: already cached; `disk_tokens` of them were
      loaded from disk for this answer. `skipped_tokens`: not read, now or in an earlier turn.
      `read_on_tokens`: skipped in earlier turns and read now.
    - `scored_tokens`, `score_s` (part of `prefill_s`), `kept_tokens`: of a sparse prefill, or the
      columns to which the answer attends; 0 if dense.
    - `image_tokens`: rows of images in the prompt. `image_s`: part of `prefill_s`, decoding images and
      computing their rows.
    - `prediction_accepted`, `prediction_rejected`: tokens of the predicted answer that occurred, at the
      expected position or in a match of several tokens, and that did not. Each counts once.
    - `host_ms_median`: time from the ids of a step until the first part of the next pass was started, in
      which the device has nothing to do, of steps whose pass was not started ahead; 0 if all were.
    - `table`: set if a shared table was used.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    disk_tokens: int = 0
    read_tokens: int = 0
    skipped_tokens: int = 0
    read_on_tokens: int = 0
    scored_tokens: int = 0
    kept_tokens: int = 0
    image_tokens: int = 0
    image_s: float = 0.0
    tokens: int = 0
    accepted: int = 0
    bonus: int = 0
    normal: int = 0
    steps: int = 0
    drafted: int = 0
    tested: int = 0
    forced: int = 0
    prediction_accepted: int = 0
    prediction_rejected: int = 0
    acceptance: float = 0.0
    mean_per_step: float = 0.0
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    score_s: float = 0.0
    decode_s: float = 0.0
    total_s: float = 0.0
    tokens_per_s: float = 0.0
    plain_tokens_per_s: float = 0.0
    positions: tuple[PositionStat, ...] = ()
    occupancy: Occupancy = Occupancy()
    draft_us_median: float = 0.0
    draft_us_p99: float = 0.0
    host_ms_median: float = 0.0
    context_used_tokens: int = 0
    context_tokens: int = 0
    memory_bytes: int = 0
    memory_peak_bytes: int = 0
    table: TableUse | None = None

    def is_read_again(self, later: Stats) -> bool:
        """Whether `later`, which continues this answer, found less than its prompt in the cache. True if this
        part has no figure.
        """
        return not self.prompt_tokens or later.reused_tokens + later.skipped_tokens < self.prompt_tokens

    def joined(self, later: Stats) -> Stats:
        """Measurements of the whole answer that `later` continues. Figures without a rule are added."""
        whole: dict[str, Any] = {}
        for name in self.__struct_fields__:
            rule = JOINED.get(name)
            added = getattr(self, name) + getattr(later, name) if rule is None else rule(self, later, name)
            whole[name] = added
        return type(self)(**whole)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _speed(a: Stats, b: Stats, name: str) -> float:
    decode_s = a.decode_s + b.decode_s
    weighted = a.tokens_per_s * a.decode_s + b.tokens_per_s * b.decode_s
    return weighted / decode_s if decode_s else max(a.tokens_per_s, b.tokens_per_s)


def _positions(a: Stats, b: Stats, name: str) -> tuple[PositionStat, ...]:
    both = zip_longest(a.positions, b.positions, fillvalue=PositionStat(0, 0))
    return tuple(PositionStat(x.tested + y.tested, x.accepted + y.accepted) for x, y in both)


# How a figure of an answer in two parts follows from them, where it is not their sum.
JOINED: dict[str, Callable[[Stats, Stats, str], Any]] = {
    **dict.fromkeys(
        ("prompt_tokens", "reused_tokens", "disk_tokens", "read_tokens", "skipped_tokens", "read_on_tokens",
         "scored_tokens", "kept_tokens", "image_tokens", "image_s"),
        lambda a, b, name: getattr(b if a.is_read_again(b) else a, name),
    ),
    **dict.fromkeys(
        ("occupancy", "context_used_tokens", "context_tokens", "memory_bytes", "table"),
        lambda a, b, name: getattr(b, name),
    ),
    **dict.fromkeys(
        ("draft_us_median", "host_ms_median"),
        lambda a, b, name: getattr(max(a, b, key=lambda part: part.steps), name),
    ),
    **dict.fromkeys(
        ("draft_us_p99", "memory_peak_bytes"), lambda a, b, name: max(getattr(a, name), getattr(b, name))
    ),
    # Tokens of the prediction that occur in neither part.
    "prediction_rejected": lambda a, b, name: getattr(
        b if b.prediction_accepted + b.prediction_rejected else a, name
    ),
    "acceptance": lambda a, b, name: _share(a.accepted + b.accepted, a.tested + b.tested),
    "mean_per_step": lambda a, b, name: _share(a.tokens + b.tokens, a.steps + b.steps),
    "ttft_s": lambda a, b, name: a.ttft_s,
    "tokens_per_s": _speed,
    "plain_tokens_per_s": lambda a, b, name: b.plain_tokens_per_s or a.plain_tokens_per_s,
    "positions": _positions,
}  # fmt: skip


class Change(Struct, frozen=True):
    """A requested value that was not applied: the setting's key, both values, and the reason."""

    setting: str
    asked: str
    used: str
    reason: str


class Effective(Struct, frozen=True):
    """Effective settings. `changes` is empty if everything was applied as requested.

    - `gate`: the gate's last decision and its reason; empty without drafts.
    - `reading`, `reading_reason`: dense or sparse prefill, or dense with attention to the columns of chosen
      passages only, and why. `scorer`: empty if dense.
    - `unmatched`: a part of the text was skipped, and no passage matches the question.
    - `format`: the syntax of the answer.
    - `exactness`: the guarantee of `exact` and the number of compared rows; empty in `fast` and without
      drafts.
    """

    model: str
    dtype: str
    drafter: str
    settings: Settings
    gate: str = ""
    changes: tuple[Change, ...] = ()
    reading: ReadingWay = "dense"
    reading_reason: str = ""
    scorer: str = ""
    format: AnswerFormat = AnswerFormat()
    exactness: str = ""
    unmatched: bool = False


class Likely(Struct, frozen=True):
    """One of the most probable tokens at a position: id, text, natural log-probability."""

    id: int
    text: str
    logprob: float


# Tens of thousands of objects without references to containers: the garbage collector can skip them.
class Token(Wire, frozen=True, gc=False):
    """One token of the answer, in order, once its text is final.

    The concatenated texts are the answer. A token whose character is completed by a later one has empty text.

    - `position`: index in the answer, from 0. `step`: its model step, from 1. `time_s`: end of that step.
    - `draft_index` (from 1), `draft_length`: position in its step's draft; 0 if it was not drafted.
      `source`: the evidence that it was drafted from; empty likewise.
    - `rejected`: on the last token of a step, the rejected guesses for its position: the end of a chain as
      one text, or the branches of a tree. At most eight tokens.
    - `logprob`: in the model's distribution, before temperature, filters and grammar. `likely`: the most
      probable tokens there, best first. None and empty unless requested.
    - `format`: set on the first token of an answer to a conversation.
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
    source: DraftSource = ""
    rejected: tuple[str, ...] = ()
    logprob: float | None = None
    likely: tuple[Likely, ...] = ()
    format: AnswerFormat | None = None


class Gauges(Wire, frozen=True):
    """Live figures during an answer, about four times per second.

    `tokens_per_s`: of the last two seconds. `plain_tokens_per_s`: of steps without a draft, recent ones of
    this answer or measured before; 0 if unknown, or if nothing drafts. `table`: set if a shared one is used.
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
    table: TableUse | None = None
    plain_tokens_per_s: float = 0.0


class Finished(Wire, frozen=True):
    """The end of an answer.

    `sources`: passages of attachments that support it, best first. `stopped_by`: the text of the request's
    `stops` that ended it; empty otherwise. `repeats_from`: the offset in its text at which the first
    repetition begins, if `reason` is `repetition`.
    """

    request: str
    reason: FinishReason
    stats: Stats
    effective: Effective
    sources: tuple[Passage, ...] = ()
    stopped_by: str = ""
    repeats_from: int | None = None


AnswerEvent = Queued | Token | Gauges | Finished


# ---- prefill


PrefillPhase = Literal["scoring", "reading"]
ReadingWay = Literal["dense", "sparse", "columns"]


class Passage(Struct, frozen=True):
    """Tokens `start` to `end` (end-exclusive) of the prompt, kept or skipped together.

    - `score`: 0 to 1 within this map. `kept`: by score, by a rule, or because it was read in an earlier turn
      (`earlier`).
    - `source`: index among the attachments of all messages, −1 if none; the passage is the characters
      `first_char` to `last_char` (end-exclusive) of its text.
    """

    start: int
    end: int
    kept: bool
    score: float
    source: int = -1
    first_char: int = 0
    last_char: int = 0
    earlier: bool = False


class PrefillProgress(Wire, frozen=True):
    """Progress of prefill: `done_tokens` of `total_tokens` read, `reused_tokens` already cached.

    A sparse prefill begins with the phase `scoring`: `scored_tokens` of `total_tokens` new ones are scored,
    none is read. In the phase `reading`, `total_tokens` is the cache's final size and `kept_tokens` the
    selected part of it, in `passages` passages; 0 if dense. `seconds_left`: predicted, to the end of the
    prefill; None while no speed is known. It may rise. `fraction`: the share of the predicted time that is
    over, 0 to 1; it never falls. `tokens_per_s`: the current speed of reading, 0 if unknown. `time_s`: since
    the start. `at_s`: when this was predicted, by the machine's steady clock (`time.monotonic`), from which
    displays count on; 0: unknown.
    """

    request: str
    done_tokens: int
    total_tokens: int
    reused_tokens: int
    seconds_left: float | None = None
    phase: PrefillPhase = "reading"
    scored_tokens: int = 0
    kept_tokens: int = 0
    time_s: float = 0.0
    fraction: float = 0.0
    passages: int = 0
    tokens_per_s: float = 0.0
    at_s: float = 0.0


class ReadingMap(Wire, frozen=True):
    """The selection of a sparse prefill, sent before it is read.

    - `passages`: cover the new tokens of the prompt in order and without gaps, and, if this turn reads on,
      those that earlier turns skipped. `read_tokens`: those that will be read.
    - `scorer`: a value of `prefill.scorer`. `dense_s`: predicted time of a dense prefill, None if unknown
      or if the context cannot hold it.
    - `always_tokens`: in passages that are kept whatever their score; the other kept ones were chosen.
    - `held_tokens`: context used by the prompt, without skipped tokens if positions are closed up.
      `all_fits`: whether the entire prompt fits the context.
    """

    request: str
    scorer: str
    prompt_tokens: int
    read_tokens: int
    passages: tuple[Passage, ...]
    dense_s: float | None = None
    held_tokens: int = 0
    all_fits: bool = True
    always_tokens: int = 0


ReadingEvent = PrefillProgress | ReadingMap

"""Answer: the state of one request from prompt to statistics, and the memory that it may use.

Rendering, plan, prefill and decoding fill it in. Worker's main thread.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import mlx.core as mx
from msgspec import Struct

from core.answer_format import AnswerFormat
from core.decoding.grammar import GrammarState
from core.decoding.heads import HeadProposer
from core.decoding.planner import Planner
from core.drafting.draft import Drafter
from core.drafting.draft_model import Proposer
from core.drafting.gate import Gate, PricedGate
from core.drafting.registry import DrafterSpec, drafter_spec
from core.errors import NotEnoughMemoryError
from core.events import FIRST_IMAGE_ROW, Change, Generate, MemoryNeed, ReadingPace, Stats
from core.folders.folder import gigabytes
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import KvQuantisation
from core.models.loader import LoadedModel
from core.prompt import Prompt
from core.settings import Settings, assign
from core.settings.declaration import read
from core.settings.drafting import ExactnessMode


class Exactness(Struct, frozen=True):
    """Limits of the decode loop.

    - `width_limit`: widest block; None: no limit.
    - `length_limit`: context length up to which blocks are verified; None: no limit.
    - `summary`: for `Effective.exactness`.
    """

    mode: ExactnessMode
    width_limit: int | None = None
    length_limit: int | None = None
    summary: str = ""


FAST = Exactness("fast")


class Pace(Protocol):
    """How fast a model reads on this machine, and how fast passages are scored."""

    @property
    def pace(self) -> ReadingPace | None:
        """The pace of reading; None if unknown."""

    def dense_s(self, tokens: int, context_tokens: int = 0) -> float | None:
        """Predicted seconds of reading `tokens` after `context_tokens` others; None if unknown."""

    def timed(self, tokens: int, context_tokens: int, seconds: float) -> None:
        """Receives the measured time of a chunk."""

    def scoring_s(self, scorer: str) -> float | None:
        """Measured seconds per token of `scorer`; None if unknown, or if it computes nothing."""

    def scored(self, scorer: str, tokens: float, seconds: float) -> None:
        """Receives the measured time in which `scorer` scored `tokens`."""

    def probe(self) -> ReadingPace | None:
        """A first pace, timed in a fraction of a second; None if that is not possible."""


class ImageRows(Protocol):
    """The images of a prompt, for passes through the model (`core.vision.sight`)."""

    seconds: float

    def end(self, prompt: Sequence[int], start: int, end: int) -> int:
        """The end, after `start`, of a pass over `prompt` from `start`, near `end`; it divides no image if
        that matters.
        """

    @property
    def undivided_rows(self) -> int:
        """Rows of the largest image that one pass reads completely; 0 if passes may divide images."""

    def rows_in(self, ids: Sequence[int], start: int) -> Iterator[None]:
        """Computes the rows of the images in `ids` from `start` on, one image after each yield."""

    def reading(
        self, sequence: CachedSequence, ids: Sequence[int]
    ) -> AbstractContextManager[tuple[mx.array, dict[str, Any]]]:
        """For one pass over `ids`, which follow `sequence`: their block [1, n] and the model's arguments."""

    def answering(self, sequence: CachedSequence) -> AbstractContextManager[None]:
        """While open, passes continue `sequence`, whose images were read, with text."""

    def why_unseen(self) -> str:
        """Why the model's answer does not depend on the images; empty if it does.

        Two passes, once a model.
        """


class DraftReader(Proposer, Protocol):
    """A draft model that drafts, and reads the prompt for it."""

    loaded: LoadedModel
    sequence: CachedSequence

    @property
    def profile(self) -> Pace:
        """Its pace."""


# Role of a step when steps run ahead: its pass was started in the step before, it starts the pass of the next
# step, both, or neither.
Pipeline = Literal["single", "enters", "ahead", "leaves"]


class StepTimes(Protocol):
    """Receives the times of steps."""

    @property
    def plain_tokens_per_s(self) -> float:
        """Speed of plain steps; 0 if unknown."""

    def step(self, width: int, seconds: float, *, tree: bool = False, pipeline: Pipeline = "single") -> None:
        """A step over a block of `width` tokens, a chain or a tree, took `seconds`."""


class Answer:
    """The request, the settings in effect, and the tokens read and written.

    - `request`: as received. `settings`: in effect. `changes`: where they differ, in order (`downgrade`).
    - `ids`: the prompt, whose last `continued_tokens` begin the answer; quotations are inserted.
      `branches`: ascending lengths of prefixes that later prompts of the chat probably share. `format`: the
      answer's syntax; None if unknown.
    - `context_tokens`: the limit of the context. `most_tokens`: how many tokens of the prompt the cache may
      hold where the prompt exceeds the context; None where all of it fits.
    - `sequence`: the cache, which holds any context before the prefill. `kv`: how it is quantised.
    - `drafter`, whether it drafts (`gate`; None: always), and how much (`planner`; None: all of it). `cost`:
      the cost of blocks. `why_plain`: why nothing is drafted for this model; empty if drafting is possible.
      `proposer`, `head`: draft model and head, if they draft. `forces`: tokens that the grammar forces are
      drafted. `prediction`: ids of the predicted answer.
    - `sparse`, `reading_reason`, `scorer`, `unmatched`: as in `Effective`. `unattended`: how many tokens were
      read, and are left out of `sequence`, which then serves this answer only.
    - `sight`: the images of the prompt; None without images.
    - `shown`: the ids of the answer, without a stop token. `stats`: filled in by the steps.

    Times are seconds of `clock` since `requested_s`; None: since now.
    """

    sequence: CachedSequence

    def __init__(
        self,
        request: Generate,
        model: LoadedModel,
        prompt: Prompt,
        clock: Callable[[], float] = time.perf_counter,
        requested_s: float | None = None,
    ) -> None:
        self.request = request
        self.model = model
        self.prompt = prompt
        self.settings: Settings = request.settings
        self.changes: list[Change] = [*prompt.changes]
        self.stats = Stats()
        self.clock = clock
        self.requested_s = clock() if requested_s is None else requested_s
        self.ids = [*prompt.ids]
        self.continued_tokens = 0
        self.branches: tuple[int, ...] = ()
        self.format: AnswerFormat | None = None
        self.context_tokens = request.settings.prefill.context_of(model.info.context_tokens)
        self.most_tokens: int | None = None
        self.kv: KvQuantisation | None = None
        self.drafter = Drafter()
        self.gate: Gate | PricedGate | None = None
        self.planner: Planner | None = None
        self.cost: StepTimes | None = None
        self.exactness = FAST
        self.why_plain = ""
        self.proposer: DraftReader | None = None
        self.head: HeadProposer | None = None
        self.grammar: GrammarState | None = None
        self.forces = False
        self.prediction: Sequence[int] = ()
        self.sparse = self.unmatched = False
        self.unattended = 0
        self.reading_reason = self.scorer = ""
        self.sight: ImageRows | None = None
        self.shown: list[int] = []

    def downgrade(self, key: str, used: object, reason: str, asked: str = "") -> None:
        """Records that `used` is in effect in place of the requested value.

        `key` is a setting, which gets the value; with `asked`, it is a part of a setting
        or of the request, and is only recorded.
        """
        if not asked:
            asked = _words(read(self.settings, key))
            self.settings = assign(self.settings, key, used)
        self.changes.append(Change(key, asked, _words(used), reason))

    def proposer_for(self, ids: Sequence[int]) -> DraftReader | None:
        """The draft model that drafts. If it cannot read `ids`: none from now on, which is recorded."""
        if self.proposer is not None and (why_not := self.proposer.loaded.why_not_read(ids)):
            asked = self.settings.draft_model.model
            self.downgrade("draft_model.model", "not for the whole prompt", why_not, asked=asked)
            self.proposer = None
        return self.proposer

    @property
    def spec(self) -> DrafterSpec:
        """The drafter in effect."""
        return drafter_spec(self.settings.drafting.drafter)

    @property
    def planned_tokens(self) -> int:
        """Most of the prompt's tokens that the cache will hold."""
        return len(self.ids) if self.most_tokens is None else self.most_tokens

    @property
    def reach_tokens(self) -> int:
        """The longest context that the answer can reach."""
        return min(self.context_tokens, self.planned_tokens + self.settings.sampling.max_tokens)

    @property
    def text_ids(self) -> list[int]:
        """The prompt without the rows of images, for drafters, tables and statistics."""
        return [token for token in self.ids if token < FIRST_IMAGE_ROW]

    @property
    def begun(self) -> Sequence[int]:
        """The tokens at the prompt's end that belong to the answer."""
        return self.ids[len(self.ids) - self.continued_tokens :]

    @property
    def held_tokens(self) -> int:
        """Number of the prompt's tokens in the cache if no more are skipped."""
        return self.sequence.held_tokens(len(self.ids)) + self.unattended

    @property
    def context_used_tokens(self) -> int:
        """Tokens in the context; skipped ones do not count.

        If the prefill was stopped, the unread tokens count, up to the number that the cache may hold.
        """
        held, is_read = self.held_tokens, len(self.sequence.tokens) >= len(self.ids) - 1
        # More than planned is read if no passage could be skipped.
        return (held if is_read else min(held, self.planned_tokens)) + len(self.shown)

    def now(self) -> float:
        return self.clock() - self.requested_s


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) or "none"


# ---- memory
#
#     peak = memory in use + growth of the KV cache, one layer of which is copied + working memory of a chunk
#
# with the figures of `MemoryNeed`, which are estimates from the model's config (starter model on Linux: 83
# MiB estimated and 65 measured for 1,000 tokens, 268 and 296 for 4,000). If an answer does not fit, these
# steps follow in order: other chats' caches and the sentence encoder are freed; the prompt is read in smaller
# chunks; the answer is shortened; the request is refused.

# The smallest chunk, as in the setting, and the shortest answer for which a prompt is read.
_LEAST_CHUNK_TOKENS = 32
_LEAST_ANSWER_TOKENS = 64
_UNLIMITED_BYTES = 1 << 60


class MemoryGuard:
    """Fits an answer into the memory that is left, so that MLX never runs out of it.

    `need`: None for a model without an estimate, for which everything fits. `left_bytes()` returns the memory
    that is left; `release()` frees memory that an answer does not need, once.
    """

    def __init__(
        self,
        need: MemoryNeed | None = None,
        left_bytes: Callable[[], int] = lambda: _UNLIMITED_BYTES,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._need = need or MemoryNeed()
        self._left_bytes = left_bytes if need else lambda: _UNLIMITED_BYTES
        self._release = release
        self._released = False

    def chunk_tokens(self, held: int, columns: int, wanted: int, undivided: int = 0) -> int:
        """The chunk, at most `wanted`, with which the cache can grow from `held` columns to `columns`.

        `undivided`: tokens of the largest image that one pass must read. Raises `NotEnoughMemoryError` if not
        even such a pass or the smallest chunk fits.
        """
        smallest = max(undivided, _LEAST_CHUNK_TOKENS)
        longest = max(smallest, min(wanted, columns - held))
        columns += _LEAST_ANSWER_TOKENS
        grown = self._need.growth(held, columns)
        a_token = max(1, self._need.working_at(columns, 1))

        def chunk() -> int:
            return (self._left_bytes() - grown) // a_token

        found = chunk()
        if found < longest and self._frees():
            found = chunk()
        if found >= longest:
            return wanted
        if found < smallest:
            least = grown + a_token * smallest
            images = f" with images of {undivided:,} tokens each" if undivided > _LEAST_CHUNK_TOKENS else ""
            raise NotEnoughMemoryError(
                f"A context of {columns - _LEAST_ANSWER_TOKENS:,} tokens{images} needs {gigabytes(least)} GB"
                f" more memory, and {gigabytes(max(0, self._left_bytes()))} GB are left.",
                "Shorten the prompt, lower the context limit, close other programs, or load a smaller model.",
            )
        return 1 << found.bit_length() - 1

    def answer_tokens(self, held: int, wanted: int) -> int:
        """The length of an answer, at most `wanted` tokens, that fits after `held` columns; at least 1."""
        need = self._need

        def peak(tokens: int) -> int:
            # A step verifies a few dozen drafted tokens at most.
            return need.growth(held, held + tokens) + need.working_at(held + tokens, _LEAST_CHUNK_TOKENS)

        if peak(wanted) <= self._left_bytes() or (self._frees() and peak(wanted) <= self._left_bytes()):
            return wanted
        return max(1, bisect_right(range(wanted), self._left_bytes(), key=peak) - 1)

    def _frees(self) -> bool:
        """Calls `release` once; returns whether it did."""
        released, self._released = self._released, True
        if not released:
            self._release()
        return not released

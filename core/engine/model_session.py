"""ModelSession: a loaded model and everything with the same lifetime, such as its caches and draft model.

Worker's main thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NoReturn

import mlx.core as mx
from msgspec.structs import replace

from core.decoding.grammar import Grammars
from core.decoding.heads import HeadProposer
from core.drafting.draft_model import MOST_TOKENS, NO_PROPOSAL, Proposal, Proposals, Proposer
from core.errors import DraftModelError, ModelTooLargeError
from core.events import DraftSource, ModelInfo
from core.folders.folder import family_of, identity_of
from core.folders.places import find
from core.folders.starter import STARTER, starter_folder
from core.heads.head_loader import NO_HEAD, load_head
from core.kv.cached_sequence import CachedSequence, PrefixCache
from core.kv.mlx_lm_caches import Cache, KvQuantisation, Quantisable, quantisable, quantise
from core.machine.profile import KeptPace, MachineProfile
from core.machine.width_cost import LiveCost
from core.models.loader import LoadedModel, MakeRoom, load
from core.prefill.scorers.scorer import ScoringDraft
from core.settings import Settings
from core.settings.prefill import KvCache
from core.system.paths import models_dir
from core.tables.memory import TableMemory
from core.tables.prebuilt import PrebuiltTables

if TYPE_CHECKING:
    from core.vision.eyes import Eyes

_TIMED_PROPOSALS = 16
# Assumed time of an output layer, in plain steps.
_OUTPUT_COST = 0.05


class ModelProposer:
    """Runs the draft model on its own cached sequence.

    `loaded` must keep every position in its cache (`CachedSequence.keeps_all`). The cache follows the context
    by longest common prefix: tokens that the target rejected are trimmed, and those it chose instead are read
    in the first forward of the next proposal. No notification is needed, and the cache is exact after any
    stop. `profile`: the pace at which it reads prompts.
    """

    def __init__(self, loaded: LoadedModel, profile: KeptPace | None = None) -> None:
        self.loaded = loaded
        self.sequence = CachedSequence(loaded.new_cache)
        self.profile = profile or KeptPace(loaded.info)

    def propose(self, context: Sequence[int], count: int) -> Proposal:
        """Up to `count` greedy ids after `context`; one evaluation for all.

        Empty if `context` contains an id that this model does not have.
        """
        room = self.loaded.info.context_tokens - len(context)
        count = min(count, room)
        if count < 1:
            return NO_PROPOSAL
        sequence = self.sequence
        sequence.reuse(context)
        unread = list(context[len(sequence.tokens) :])
        if not self.loaded.has_rows(unread):
            return NO_PROPOSAL
        block = mx.array(unread)
        ids: list[mx.array] = []
        probabilities: list[mx.array] = []
        for _ in range(count):
            logits = self.loaded.model(block[None], cache=sequence.cache)[0, -1]
            block = mx.argmax(logits, keepdims=True)
            ids.append(block)
            probabilities.append(mx.exp(logits[block] - mx.logsumexp(logits)).astype(mx.float32))
        found: Any = mx.concatenate(ids).tolist()
        likely: Any = mx.concatenate(probabilities).tolist()
        # The newest guess was not fed; all earlier ones were.
        sequence.append([*unread, *found[:-1]])
        return Proposal(found, likely)


class TimedProposer:
    """`proposer` with the time that it takes. `prior`: cost of a token in plain steps until it is timed; of
    any number of tokens if they are guessed `at_once`.
    """

    def __init__(
        self,
        proposer: Proposer,
        prior: float,
        clock: Callable[[], float] = time.perf_counter,
        *,
        at_once: bool = False,
    ) -> None:
        self._proposer = proposer
        self._prior = prior
        self._at_once = at_once
        self._clock = clock
        self._seconds: deque[float] = deque(maxlen=_TIMED_PROPOSALS)

    def propose(self, context: Sequence[int], count: int) -> Proposal:
        started = self._clock()
        found = self._proposer.propose(context, count)
        if found.tokens:
            self._seconds.append((self._clock() - started) / self._times(len(found.tokens)))
        return found

    def cost(self, count: int, plain_s: float) -> float:
        """The cost of `count` tokens in plain steps of `plain_s` seconds each; 0: not known."""
        token = median(self._seconds) / plain_s if self._seconds and plain_s else self._prior
        return self._times(count) * token

    def _times(self, count: int) -> int:
        return 1 if self._at_once else count


class DraftModels:
    """The draft model of `target`, for drafting and for scoring passages; loaded at first use.

    One is loaded at a time. It must have the tokenizer family of `target`; to draft it must also keep every
    position in its cache. One that does not is loaded once, until its files change. `make_room` as in `load`;
    `freed` is called when a draft model was freed.
    """

    def __init__(self, target: ModelInfo, make_room: MakeRoom, freed: Callable[[], None]) -> None:
        self._target = target
        self._make_room = make_room
        self._freed = freed
        self._held: tuple[str, LoadedModel] | None = None
        # By user and files: message and hint. An error would keep the model in its traceback.
        self._refused: dict[tuple[str, str], tuple[str, str]] = {}
        self._profile: KeptPace | None = None
        self.proposer: ModelProposer | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        return (self._held[1].info.path,) if self._held else ()

    @property
    def nbytes(self) -> int:
        cache = self.proposer.sequence.nbytes if self.proposer else 0
        return cache + (self._held[1].info.size_bytes if self._held else 0)

    def drafting(self, reference: str) -> ModelProposer:
        """The draft model for drafting, loaded if necessary. Raises `DraftModelError`, `ModelError`."""
        draft = self._of_family(reference, "drafter")
        if self.proposer is None:
            proposer = ModelProposer(draft, self._profile_of(draft))
            if not proposer.sequence.keeps_all:
                why_not = f"{draft.info.name} cannot roll back rejected tokens, so it cannot draft."
                self._refuse("drafter", draft, why_not, "Choose a draft model with plain full attention.")
            self.proposer = proposer
        return self.proposer

    def scoring(self, reference: str, *, drafts: bool) -> ScoringDraft:
        """The draft model for scoring passages, loaded if necessary.

        If it also `drafts` in this answer, it reads into the sequence for drafting, else into a temporary
        one. Raises `DraftModelError`, `ModelError`.
        """
        draft = self._of_family(reference, "scorer")
        sequence = self.proposer.sequence if drafts and self.proposer else CachedSequence(draft.new_cache)
        return ScoringDraft(draft, sequence, self._profile_of(draft))

    def keep_pace(self) -> None:
        """Saves the draft model's pace if chunks were timed since it was last saved."""
        if self._profile is not None:
            self._profile.keep_pace()

    def _profile_of(self, draft: LoadedModel) -> KeptPace:
        self._profile = self._profile or KeptPace(draft.info)
        return self._profile

    def forget(self) -> None:
        if self.proposer is not None:
            self.proposer.sequence.clear()

    def keep_for(self, settings: Settings) -> None:
        """Frees the draft model unless answers with `settings` may use it."""
        drafting, scorer = settings.drafting.drafter in ("auto", "draft-model"), settings.prefill.scorer
        used = drafting or scorer == "draft-model"
        if self._held and not (used and self._held[0] == settings.draft_model.model):
            self._free()

    def _free(self) -> None:
        if self._held:
            self._held = self._profile = self.proposer = None
            self._freed()
            mx.clear_cache()

    def _refuse(self, user: str, draft: LoadedModel, message: str, hint: str) -> NoReturn:
        """Frees `draft`, which `user` never loads again."""
        self._refused[user, _files_of(draft.info.reference)] = message, hint
        self._free()
        raise DraftModelError(message, hint)

    def _of_family(self, reference: str, user: str) -> LoadedModel:
        """The loaded model `reference`, for the drafter or the scorer `draft-model`."""
        if not reference:
            raise DraftModelError(
                f"The {user} “draft-model” needs a second model, and none was chosen.",
                f"Set draft_model.model to a folder or hub name, or choose another {user}.",
            )
        if self._refused and (refused := self._refused.get((user, _files_of(reference)))):
            raise DraftModelError(*refused)
        if self._held is not None and self._held[0] == reference:
            return self._held[1]
        self._free()
        draft, target = load(reference, make_room=self._make_room), self._target
        if draft.info.family != target.family:
            self._refuse(
                user,
                draft,
                f"{draft.info.name} ({draft.info.family_name}) and {target.name} ({target.family_name})"
                " have different tokenizers.",
                f"Choose a draft model of the {target.family_name} family.",
            )
        self._held = reference, draft
        return draft


def _files_of(reference: str) -> str:
    """Changes with the config, the weights and the tokenizer of a model; empty if it is not here."""
    folder = starter_folder() if reference == STARTER else find(reference)
    return f"{identity_of(folder)} {family_of(folder)}" if folder else ""


class _Quantised(LoadedModel):
    """`loaded` with new caches that are quantised from the start, for separate measurements."""

    def __init__(self, loaded: LoadedModel, kv: KvQuantisation) -> None:
        info, cache = loaded.info, f"cache of {kv.bits} bits"
        info = replace(info, name=f"{info.name}, {cache}", quantisation=f"{info.quantisation} {cache}")
        super().__init__(loaded.model, loaded.tokenizer, info)
        self._loaded = loaded
        self._kv = kv

    def new_cache(self) -> Cache:
        cache = self._loaded.new_cache()
        quantise(cache, self._kv)
        return cache


class ModelSession:
    """`model` with its prefix cache, draft model, compiled grammars, measurements and tables.

    `make_room` is called before weights of a draft model or a head are read, as in `load`.
    `profile` has the measurements with full-precision caches; those with quantised ones begin with the first
    request that uses them.
    """

    def __init__(self, model: LoadedModel, memory: TableMemory, make_room: MakeRoom) -> None:
        self.model = model
        self.memory = memory
        self.prefix_cache = PrefixCache(model.new_cache)
        self.drafts = DraftModels(model.info, make_room, self._forget_proposals)
        self._make_room = make_room
        self.profile = MachineProfile(model)
        self._quantised_profiles: dict[int, MachineProfile] = {}
        self._quantisable: Quantisable | None = None
        self.grammars = Grammars(model)
        self.beforehand = PrebuiltTables(model.info)
        self._head: HeadProposer | str | None = None
        self._eyes: Eyes | None = None
        self._downloads_ns = 0
        # For `auto`: the proposer, its times, and its learned acceptance.
        self._proposals: tuple[Proposer, TimedProposer, Proposals] | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of the model and of the draft model, if one is loaded."""
        return (self.model.info.path, *self.drafts.folders)

    def head(self) -> HeadProposer | str:
        """The model's head, loaded at the first call or after its download; or why it cannot draft."""
        changed_ns = folder.stat().st_mtime_ns if (folder := models_dir()).is_dir() else 0
        if self._head is None or (self._head == NO_HEAD and changed_ns != self._downloads_ns):
            try:
                self._head, self._downloads_ns = self._load_head(), changed_ns
            except ModelTooLargeError as error:
                return error.message  # later there may be more memory
        return self._head

    def head_for(self, settings: Settings) -> HeadProposer | None:
        """The head that drafts in an answer with `settings`; None if none does."""
        drafter, second = settings.drafting.drafter, settings.draft_model.model
        if drafter != "mtp" and not (drafter == "auto" and not second):
            return None
        return head if isinstance(head := self.head(), HeadProposer) else None

    def proposals(self, proposer: Proposer, live: LiveCost, *, isolated: bool) -> Proposals:
        """The proposals of `proposer` for an answer with the costs `live`; `isolated`: without a memory."""
        if isolated or self._proposals is None or self._proposals[0] is not proposer:
            block = proposer.block_tokens if isinstance(proposer, HeadProposer) else 0
            timed = TimedProposer(proposer, self._relative_cost(proposer), at_once=block > 0)
            source: DraftSource = "draft model" if isinstance(proposer, ModelProposer) else "head"
            cost = lambda count: timed.cost(count, live.plain_s)  # noqa: E731
            made = Proposals(timed, cost, live, source, block or MOST_TOKENS)
            if not isolated:
                self._proposals = proposer, timed, made
            return made
        _, known, made = self._proposals
        made.cost, made.block_cost = (lambda count: known.cost(count, live.plain_s)), live
        return made

    def _relative_cost(self, proposer: Proposer) -> float:
        """Expected cost of a guessed token in plain steps, by sizes."""
        info = self.model.info
        if isinstance(proposer, ModelProposer):
            return proposer.loaded.info.size_bytes / max(1, info.size_bytes)
        return 1.0 / max(1, info.layers) + _OUTPUT_COST

    def _forget_proposals(self) -> None:
        """Drop the proposals; those of a draft model would keep its weights in memory."""
        self._proposals = None

    def _load_head(self) -> HeadProposer | str:
        info = self.model.info
        if info.machines:
            return "a model on several machines does not draft with a head"
        found = load_head(self.model.model, Path(info.path), self._make_room) if info.path else NO_HEAD
        return found if isinstance(found, str) else HeadProposer(found)

    def eyes(self) -> Eyes:
        """The model's eyes, whose tower is loaded with the first image. Raises `RequestError`."""
        if self._eyes is None:
            from core.vision.eyes import Eyes, family_of  # not without an image

            self._eyes = Eyes(self.model, family_of(self.model.info), self._make_room)
        return self._eyes

    def release_eyes(self, *, rows: bool) -> None:
        """Frees the tower, and the `rows` of images, which the next image loads again."""
        if self._eyes is not None:
            self._eyes.unload(rows=rows)

    @property
    def eyes_bytes(self) -> int:
        """Bytes of the tower, if it is loaded, and of the rows of images."""
        return self._eyes.nbytes if self._eyes is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes of weights and caches, of head, eyes and draft model, too: what unloading frees."""
        head = self._head.nbytes if isinstance(self._head, HeadProposer) else 0
        held = self.model.info.size_bytes + self.prefix_cache.nbytes
        return held + self.drafts.nbytes + head + self.eyes_bytes

    # ---- quantised caches

    def quantisation(self, settings: KvCache) -> tuple[KvQuantisation | None, str]:
        """How `settings` quantise this model's caches; else None, and why not if they should.

        The first call tries it on the model, with some short forward passes.
        """
        if settings.bits == "off":
            return None, ""
        if why_not := self.model.info.kv_why_not:
            return None, why_not
        if self._quantisable is None:
            self._quantisable = quantisable(self.model.model, self.model.new_cache)
        found = self._quantisable
        if found.why_not:
            return None, found.why_not
        return KvQuantisation(int(settings.bits), found.groups), ""

    @property
    def profiles(self) -> tuple[MachineProfile, ...]:
        """The measurements with each kind of cache in use, full precision first."""
        return (self.profile, *self._quantised_profiles.values())

    def profile_of(self, kv: KvQuantisation | None) -> MachineProfile:
        """The measurements with caches quantised as in `kv`."""
        if kv is None:
            return self.profile
        if kv.bits not in self._quantised_profiles:
            self._quantised_profiles[kv.bits] = MachineProfile(_Quantised(self.model, kv))
        return self._quantised_profiles[kv.bits]

    def measure_some(self) -> bool:
        """Runs the next piece of a missing measurement; returns whether there was one."""
        return any(each.some() for each in self.profiles) or self.profile.some_readings()

    def measuring_due_s(self) -> float | None:
        """Seconds until a measurement that failed is repeated; None if none is waiting."""
        due = (each.due_s() for each in self.profiles)
        return min((each for each in due if each is not None), default=None)

    # ---- contexts

    def forget_contexts(self) -> None:
        """Clear the prefix cache and the draft model's sequence."""
        self.prefix_cache.clear()
        self.drafts.forget()

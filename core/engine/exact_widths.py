"""ExactWidths: compares block widths of the loaded model, in the background and on blocks of real answers.

Comparing begins with the first answer that wants `guarded` or `exact`: for a few seconds before it, then
while the engine is idle, until `Profile.is_complete`. Each finished comparison is saved, so an interrupted
run is not lost. Some blocks of `exact` answers are kept with a copy of the cache before them and computed
again one token at a time while idle; a difference removes their width for good. Engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.decoding.probes.compare import Comparison, compare_block, compare_widths
from core.decoding.probes.exactness import Profile, load_profile, save_profile
from core.kv.entries import leaves
from core.kv.told import ToldCache
from core.models.loader import LoadedModel

# Before the first answer that wants it, and in streams of comparisons; the rest is done while idle.
_UP_FRONT_S = 4.0
_UP_FRONT_STREAMS = 3
# Of an answer's blocks the first and each 32nd is kept, as long as copies of the cache are small.
_SAMPLED_BLOCKS = 32
_MOST_SAMPLES = 4
_MOST_SAMPLE_BYTES = 128 << 20


class BlockSample(Struct):
    """A verified block: the cache before it, its known tokens, and its rejected ones."""

    cache: list[Any]
    known: list[int]
    tail: list[int]


class ExactWidths:
    """Widths of one loaded model. `clock` gives seconds."""

    def __init__(self, loaded: LoadedModel, clock: Callable[[], float] = time.perf_counter) -> None:
        self._loaded = loaded
        self._clock = clock
        self._profile: Profile | None = None
        self._wanted = False
        self._comparing: Generator[Profile, None, None] | None = None
        self._checking: Generator[None, None, Comparison] | None = None
        self._samples: list[BlockSample] = []
        self._blocks = 0

    @property
    def profile(self) -> Profile:
        """What is known so far; compares nothing."""
        if self._profile is None:
            self._profile = load_profile(self._loaded.info)
        return self._profile

    @property
    def has_work(self) -> bool:
        """Whether `some` has something to compare."""
        return bool(self._samples) or (self._wanted and not self._is_done)

    @property
    def _is_done(self) -> bool:
        return self.profile.streams >= _UP_FRONT_STREAMS and self.profile.is_complete

    def want(self) -> Profile:
        """The profile for an answer in `guarded` or `exact`; compares for a few seconds if it has nothing."""
        self._wanted = True
        end = self._clock() + _UP_FRONT_S
        while self.profile.streams < _UP_FRONT_STREAMS and self._clock() < end and self._compare_some():
            pass
        return self.profile

    def complete(self) -> Profile:
        """The complete profile, compared now (minutes for a model of some size); kept blocks are checked."""
        self._wanted = True
        while self.some():
            pass
        return self.profile

    def some(self) -> bool:
        """One forward of a comparison; whether there was any."""
        return self._check_some() or (self._wanted and self._compare_some())

    def _compare_some(self) -> bool:
        if self._comparing is None:
            if self._is_done:
                return False
            loaded = self._loaded
            self._comparing = compare_widths(self.profile, loaded.model, loaded.new_cache, loaded.info)
        before = self.profile
        found = next(self._comparing, None)
        if found is None:
            self._comparing, self._wanted = None, False
            return False
        self._profile = found
        if found.widths != before.widths or found.is_complete != before.is_complete:
            save_profile(found)
        return True

    # ---- blocks of answers

    def before_block(self, cache: Sequence[Any]) -> list[Any] | None:
        """A copy of `cache` if the block that is about to be verified will be checked; else None."""
        self._blocks += 1
        if self._blocks % _SAMPLED_BLOCKS != 1 or len(self._samples) >= _MOST_SAMPLES:
            return None
        held = sum(int(entry.nbytes) for entry in leaves(cache) if not entry.empty())
        if isinstance(cache, ToldCache) or held > _MOST_SAMPLE_BYTES:
            return None
        return deepcopy(list(cache))

    def keep_block(self, cache: list[Any], known: Sequence[int], tail: Sequence[int]) -> None:
        """Check this block later: `known` tokens, of which the accepted ones, then the rejected `tail`."""
        self._samples.append(BlockSample(cache, list(known), list(tail)))

    def _check_some(self) -> bool:
        if not self._samples:
            return False
        sample = self._samples[0]
        if self._checking is None:
            model = self._loaded.model
            self._checking = compare_block(model, sample.cache, sample.known, sample.tail)
        try:
            next(self._checking)
        except StopIteration as done:
            self._checked(self._samples.pop(0), done.value)
            self._checking = None
        except Exception:
            self._samples.clear()
            self._checking = None
            raise
        return True

    def _checked(self, sample: BlockSample, found: Comparison) -> None:
        width = len(sample.known) + len(sample.tail)
        profile = self.profile.with_comparison(width, found.rows, identical=found.identical, in_use=True)
        self._profile = replace(profile, noise=max(profile.noise, found.noise))
        # A comparison under way goes on from the profile that it began with.
        self._comparing = None
        save_profile(self._profile)

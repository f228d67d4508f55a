"""The decode loop: propose, verify in one forward, accept, roll back.

One step is one forward pass of the target over a block: the last token, which is not in the
cache yet, and the draft. It emits the accepted path and one token of the verifier's own. A step
without a draft is a block of width 1.

Steps without a draft are pipelined like mlx-lm's `generate_step`: the next forward is built on
the token that is still being computed, so the interpreter's work hides behind the model's. Such
a forward commits the next step to width 1, so it is started only where no draft is to be
expected: always for a drafter that never drafts, else after `_DRY_STEPS` fruitless look-ups.

Invariant after every step: the ledger holds the prompt and the emitted tokens, without the
newest one (or with it, while a forward is running ahead), and the cache holds the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
from msgspec import Struct

from core.decoding.accept import walk
from core.decoding.sampling import PENALTY_WINDOW_TOKENS, Sampler
from core.drafting.draft import EMPTY, Draft, sanitise
from core.drafting.drafter import Drafter
from core.kv.ledger import Ledger

# Look-ups in a row that found nothing before the loop runs ahead. Measured on the three-class
# prompts: 1 loses drafts right after a dry token, above 3 novel text loses pipelining.
_DRY_STEPS = 2
# mlx-lm gives MLX's buffer cache back this often while it generates.
_CLEAR_EVERY_STEPS = 256


class Step(Struct, frozen=True):
    """What one forward gave. `tokens`: the `accepted` drafted ones, then the verifier's own."""

    tokens: tuple[int, ...]
    drafted: int
    accepted: int
    tested: int
    draft_s: float


class DecodeLoop:
    """Continues `ledger`, which holds all of the context but its last token, `pending`.

    `model(ids[1, w], cache=…)` returns logits [1, w, vocabulary]. `vocabulary` bounds drafted
    ids. Worker's main thread.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        ledger: Ledger,
        pending: int,
        drafter: Drafter,
        sampler: Sampler,
        *,
        vocabulary: int,
        drafts: bool,
    ) -> None:
        self._model = model
        self._ledger = ledger
        self._pending = pending
        self._drafter = drafter
        self._sampler = sampler
        self._vocabulary = vocabulary
        self._drafts = drafts and ledger.trimmable
        self._running: mx.array | None = None
        self._dry = 0
        self._steps = 0

    def steps(self, max_tokens: int) -> Iterator[Step]:
        """Step after step until `max_tokens` are emitted; never more. Close it to stop early.

        The caller decides about stop tokens and truncates the ledger to what was shown.
        """
        left = max_tokens
        while left > 0:
            step = self._verify_or_run(left)
            left -= len(step.tokens)
            self._steps += 1
            if self._steps % _CLEAR_EVERY_STEPS == 0:
                mx.clear_cache()
            yield step

    def _verify_or_run(self, left: int) -> Step:
        started = time.perf_counter()
        # One place is kept for the verifier's own token, so an accepted draft never overshoots.
        draft = self._propose(left - 1)
        draft_s = time.perf_counter() - started
        if len(draft) and self._running is None:
            step = self._verify(draft, draft_s)
        else:
            step = self._run(left, draft_s)
        started = time.perf_counter()
        self._drafter.observe(step.tokens)
        observe_s = time.perf_counter() - started
        return Step(step.tokens, step.drafted, step.accepted, step.tested, step.draft_s + observe_s)

    def _propose(self, budget: int) -> Draft:
        if not self._drafts or budget < 1:
            return EMPTY
        draft = sanitise(self._drafter.draft(budget), vocabulary=self._vocabulary, budget=budget)
        self._dry = 0 if len(draft) else self._dry + 1
        return draft

    def _verify(self, draft: Draft, draft_s: float) -> Step:
        ledger = self._ledger
        block = [self._pending, *draft.tokens]
        start = len(ledger.tokens)
        choices: Any = self._forward(mx.array(block), start, draft).tolist()
        found = walk(draft, choices)
        accepted = [draft.tokens[node] for node in found.path]
        ledger.append([self._pending, *accepted])
        ledger.take_back(len(draft) - len(accepted))
        self._pending = found.last
        self._drafter.feedback(draft, len(accepted))
        return Step((*accepted, found.last), len(draft), len(accepted), found.tested, draft_s)

    def _run(self, left: int, draft_s: float) -> Step:
        ledger = self._ledger
        running = self._running
        if running is None:
            running = self._forward(mx.array([self._pending]), len(ledger.tokens), EMPTY)
            _start(running)
            ledger.append([self._pending])
        ahead: mx.array | None = None
        if left > 1 and (not self._drafts or self._dry >= _DRY_STEPS):
            ahead = self._forward(running, len(ledger.tokens), EMPTY, unknown=running)
            _start(ahead)
        tokens: Any = running.tolist()
        token = int(tokens[0])
        if ahead is not None:
            ledger.append([token])
        self._running = ahead
        self._pending = token
        return Step((token,), 0, 0, 0, draft_s)

    def _forward(
        self, block: mx.array, start: int, draft: Draft, unknown: mx.array | None = None
    ) -> mx.array:
        """The verifier's choices, uint32 [w], for `block` at positions start … start+w−1; lazy."""
        logits = self._model(block[None], cache=self._ledger.cache)[0]
        positions = range(start + 1, start + 1 + block.shape[0])
        windows = self._windows(draft, unknown) if self._sampler.penalises else None
        return self._sampler.choose(logits, positions, windows)

    def _windows(self, draft: Draft, unknown: mx.array | None) -> mx.array:
        """For each row the last ids of its own path; `unknown` is a token still being computed."""
        context = self._ledger.tokens[-PENALTY_WINDOW_TOKENS:]
        if unknown is not None:
            known = mx.array(context[-(PENALTY_WINDOW_TOKENS - 1) :], dtype=mx.uint32)
            return mx.concatenate([known, unknown.astype(mx.uint32)])[None]
        paths: list[list[int]] = [[*context, self._pending]]
        for token, parent in zip(draft.tokens, draft.parents):
            paths.append([*paths[parent + 1], token])
        size = min(PENALTY_WINDOW_TOKENS, len(paths[0]))
        return mx.array([path[-size:] for path in paths], dtype=mx.uint32)


def _start(choices: mx.array) -> None:
    """Begin computing without waiting for it."""
    mx.async_eval(choices)  # type: ignore[no-untyped-call]

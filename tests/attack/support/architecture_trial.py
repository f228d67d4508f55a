"""Trial: one tiny model, tried out by the product and then asked with every drafter.

`faults` are differences, in sentences; `notes` say, for chains, trees, prefix reuse and skip-reading,
either `yes` or the product's own reason for not doing it. A reference is always plain decoding from an
empty cache, and once mlx-lm's own loop.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_tokenizer

from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine, never
from core.events import Finished, ModelInfo, Token
from core.folders.folder import fingerprint
from core.kv.mlx_lm_caches import why_no_rollback
from core.models.loader import LoadedModel
from core.settings import Settings, assign_all
from tests.attack.support.tiny_configs import CONTEXT_TOKENS, VOCABULARY

_ANSWER_TOKENS = 24
_TURN_TOKENS = 10
# So long that passages of it can be skipped.
_LONG_TOKENS = 800
_DRAFTING = tuple(n for n, spec in DRAFTERS.items() if spec.drafts and spec.needs_proposer != "head")
# A penalty below 1 makes answers that repeat themselves, so that drafts are accepted.
_SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {"sampling.temperature": 0.0, "sampling.repetition_penalty": 1.0},
    "sampled, with a penalty": {"sampling.temperature": 0.6, "sampling.repetition_penalty": 0.9},
}
YES = "yes"


class Trial:
    """Of one model, known by `name`. `run()` once."""

    def __init__(self, name: str, model: Any, rng: random.Random, draft_model: Path) -> None:
        self.faults: list[str] = []
        self.notes: dict[str, str] = {}
        self.counts: dict[str, float] = {}
        self._name, self._rng, self._draft_model = name, rng, draft_model
        tokenizer = load_tokenizer(draft_model)
        why_not = why_no_rollback(make_prompt_cache(model))
        info = ModelInfo(
            *(name, "", fingerprint(tokenizer.get_vocab()), "toy", name, "float32", ""),
            *(0, 0, CONTEXT_TOKENS, VOCABULARY, len(model.layers), not why_not, why_not),
        )
        self._loaded = LoadedModel(model, tokenizer, info)
        self._loaded.eos = frozenset()
        self._engine = Engine()
        self._engine.use(self._loaded)

    def run(self) -> None:
        """Try it out, then everything."""
        self._verdict = self._engine.try_out()
        prompt = self._prompt(60)
        self.notes["trees"] = self._verdict.why_no_trees or YES
        self.notes["chains"] = self.notes["prefix reuse"] = YES
        for sampling, values in _SAMPLINGS.items():
            self._answers(prompt, sampling, values)
        self._read_with_gaps()
        for part in ("chains", "trees", "prefix reuse", "sparse prefill"):
            self._count(part if self.notes[part] == YES else f"no {part}")
        self._engine.unload()

    def _answers(self, prompt: list[int], sampling: str, values: dict[str, Any]) -> None:
        expected = self._cold(prompt, values, _ANSWER_TOKENS)
        if sampling == "greedy":
            steps = generate_step(mx.array(prompt), self._loaded.model, max_tokens=_ANSWER_TOKENS)
            stock = [int(token) for token, _ in steps]
            self._same("plain decoding against mlx-lm's own loop", expected, stock)
        follow = [*prompt, *expected, *self._prompt(20)]
        expected_follow = self._cold(follow, values, _TURN_TOKENS) if sampling == "greedy" else []
        stop = self._rng.randint(3, 12)
        for drafter in _DRAFTING:
            told = f"{drafter}, {sampling}"
            chosen = {**values, "drafting.drafter": drafter}
            self._engine.forget()
            looks = iter([False] * stop)
            begun, _ = self._ask(prompt, chosen, _ANSWER_TOKENS, partial(next, looks, True))
            self._same(f"{told}, stopped early", begun, expected[: len(begun)])
            left = _ANSWER_TOKENS - len(begun)
            if left:
                # The penalty and the noise go by what stands before, so going on is the same answer, unless
                # it starts cold, where answers depend on how a text was split.
                begun_prompt = [*prompt, *begun]
                going_on, _ = self._ask(begun_prompt, chosen, left)
                if begun + going_on != expected and self._verdict.splits.reason:
                    self._same(f"{told}, continued", going_on, self._cold(begun_prompt, values, left))
                else:
                    self._same(f"{told}, continued", begun + going_on, expected)
            if sampling == "greedy":
                answer, finished = self._ask(follow, chosen, _TURN_TOKENS)
                self._same(f"{told}, second turn", answer, expected_follow)
                self._look(finished)
                self._engine.forget()
                answer, finished = self._ask(prompt, chosen, _ANSWER_TOKENS)
                self._same(told, answer, expected)

    def _look(self, finished: Finished) -> None:
        for change in finished.effective.changes:
            if change.setting == "drafting.drafter" and change.used == "off":
                self.notes["chains"] = change.reason.partition("cannot speculate: ")[2] or change.reason
            if change.setting == "prefix cache":
                self.notes["prefix reuse"] = change.reason
        if self.notes["prefix reuse"] == YES and not finished.stats.reused_tokens:
            self.notes["prefix reuse"] = "its cache cannot go back to where the texts part"

    def _read_with_gaps(self) -> None:
        prompt = self._prompt(_LONG_TOKENS)
        gaps = {"prefill.mode": "on", "prefill.scorer": "lexical", "prefill.keep_pct": 7}
        self._engine.forget()
        expected, finished = self._ask(prompt, {**gaps, "drafting.drafter": "off"}, _TURN_TOKENS)
        if finished.effective.reading != "sparse":
            reasons = [c.reason for c in finished.effective.changes if c.setting.startswith("prefill.")]
            self.notes["sparse prefill"] = "; ".join(reasons) or "it was not done, and no reason given"
            if not reasons:
                self.faults.append("skip-reading was asked for, not done, and nothing was said")
        else:
            self.notes["sparse prefill"] = YES
            for drafter in ("ngram-simple", "cacheback"):
                self._engine.forget()
                answer, _ = self._ask(prompt, {**gaps, "drafting.drafter": drafter}, _TURN_TOKENS)
                self._same(f"{drafter} after skip-reading", answer, expected)
        off = {"drafting.drafter": "off"}
        whole, _ = self._ask(prompt, off, _TURN_TOKENS)
        self._same("the whole text after its skip-reading", whole, self._cold(prompt, {}, _TURN_TOKENS))

    def _cold(self, prompt: Sequence[int], values: dict[str, Any], tokens: int) -> list[int]:
        self._engine.forget()
        answer, _ = self._ask(prompt, {**values, "drafting.drafter": "off"}, tokens)
        self._engine.forget()
        return answer

    def _ask(
        self, prompt: Sequence[int], values: dict[str, Any], tokens: int, cancelled: Any = never
    ) -> tuple[list[int], Finished]:
        events = list(self._engine.generate_ids(prompt, self._settings(values, tokens), cancelled))
        finished = events[-1]
        if not isinstance(finished, Finished):
            raise AssertionError(f"an answer ended with {finished}")
        self._count("drafted_tokens", finished.stats.drafted)
        self._count("accepted_tokens", finished.stats.accepted)
        return [event.id for event in events if isinstance(event, Token)], finished

    def _settings(self, values: dict[str, Any], tokens: int) -> Settings:
        chosen = {
            "prefill.mode": "off",
            "prefill.chunk_tokens": 128,
            "decoding.exactness": "fast",
            "gate.mode": "always",
            "sampling.temperature": 0.0,
            "sampling.max_tokens": tokens,
            "ngram_simple.n_min": 1,
            "ngram_mod.n": 4,
            "ngram_mod.slots": 4096,
            "cacheback.tree_tokens": 16,
            "cacheback.reserved_tokens": 4,
            "draft_model.model": str(self._draft_model),
            **values,
        }
        return assign_all(Settings(), chosen.items())

    def _same(self, what: str, answer: list[int], expected: list[int]) -> None:
        self._count("comparisons")
        if answer == expected:
            return
        pairs = enumerate(zip(answer, expected))
        at = next((at for at, (one, other) in pairs if one != other), min(len(answer), len(expected)))
        self.faults.append(f"{self._name}: {what}: another token from token {at} on")

    def _prompt(self, tokens: int) -> list[int]:
        """With repetitions, so that there is something to draft."""
        rng = self._rng
        phrases = [[rng.randrange(4, VOCABULARY) for _ in range(rng.randint(3, 9))] for _ in range(5)]
        prompt: list[int] = []
        while len(prompt) < tokens:
            prompt += rng.choice(phrases)
        return prompt[:tokens]

    def _count(self, name: str, more: float = 1.0) -> None:
        self.counts[name] = self.counts.get(name, 0.0) + more

"""`python -m tests.core.cluster.trial SPEC.json`: rank 0 of a launch, and a comparison of its answers.

Greedy answers with every drafter against the cluster's own plain ones, with a cancel, a stop and a second
turn; sampled ones; a prompt read in part; and the logits against the whole model in this process. A line of
JSON a finding, as it comes; the exit status is 0 if all was tried.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.models.runtime import prepare

prepare()

import mlx.core as mx  # noqa: E402
import msgspec  # noqa: E402

from core.cluster import shard  # noqa: E402
from core.cluster.ranks import load  # noqa: E402
from core.drafting import draft_model  # noqa: E402
from core.engine.engine import Engine  # noqa: E402
from core.events import ClusterEnded, Event, Finished, ReadingMap, Token  # noqa: E402
from core.settings import Settings, assign_all  # noqa: E402

_SAMPLED = {"sampling.temperature": 0.7, "sampling.seed": 5, "sampling.repetition_penalty": 1.05}
_VOCABULARY = 260


class Spec(msgspec.Struct):
    """`draft_model` drafts for draft-model. `tokens` of each answer, `sparse` of a long prompt (0: none)."""

    model: str
    draft_model: str
    drafters: list[str]
    tokens: int = 200
    sparse: int = 0
    sampled: bool = True
    split: str = "tensor"


def main() -> int:
    """Try what the spec says."""
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec)
    draft_model._STOP_BELOW = 0.0  # a random model's own guesses are unlikely
    if spec.split == "pipeline":  # for types that could be split by tensor, too
        shard.choose = lambda config, size: ("pipeline", shard.why_not("pipeline", config, size))
    cluster, alone = Engine(), Engine()
    alone.load(spec.model)
    cluster.use(load(spec.model, lambda stage, part: None, lambda size: None, _ended))
    for engine in (cluster, alone):
        engine.loaded.eos = frozenset()
    trial = _Trial(spec, cluster, alone)
    verdict = cluster.try_out()
    trial.tell("verdict", True, trees=verdict.why_no_trees, splits=verdict.splits.reason)
    trial.logits()
    trial.greedy()
    if spec.sampled:
        trial.sampled()
    if spec.sparse:
        trial.sparse()
    cluster.close()
    return 0


def _ended(ended: ClusterEnded) -> None:
    print(ended, file=sys.stderr, flush=True)


class _Trial:
    def __init__(self, spec: Spec, cluster: Engine, alone: Engine) -> None:
        self.spec, self.cluster, self.alone = spec, cluster, alone
        self.rng = random.Random(spec.model)
        self.prompt = _prompt(self.rng, 60)

    def tell(self, what: str, fine: bool, **more: Any) -> None:
        print(json.dumps({"what": what, "fine": fine, **more}), flush=True)

    def logits(self) -> None:
        """Of a prompt, a block and single tokens, against one process."""
        blocks = [self.prompt[:48], self.prompt[48:54], *([token] for token in self.prompt[54:])]
        rows = []
        for engine in (self.cluster, self.alone):
            loaded = engine.loaded
            held = loaded.new_cache()
            found = [loaded.model(mx.array(block)[None], cache=held)[0] for block in blocks]
            rows.append(mx.concatenate(found).astype(mx.float32))
        mx.eval(rows)
        error = float(mx.abs(rows[0] - rows[1]).max())
        flips = int((mx.argmax(rows[0], -1) != mx.argmax(rows[1], -1)).sum())
        self.tell("logits", error <= 1e-4, error=error, flips=flips)

    def greedy(self) -> None:
        """With every drafter, cancelled, stopped and gone on with."""
        spec, rng = self.spec, self.rng
        expected, _ = self.run("off", self.prompt)
        self.tell("plain", len(expected) == spec.tokens, **self.beside(expected))
        stop = expected[rng.randrange(10, min(60, spec.tokens))]
        cut = expected.index(stop)
        follow = [*self.prompt, *expected[: cut + 1], *_prompt(rng, 15)]
        self.cluster.forget()
        after, _ = self.run("off", follow, {"sampling.max_tokens": 40})
        for name in spec.drafters:
            self.cluster.forget()
            got, finished = self.run(name, self.prompt)
            cancelled, _ = self.run(name, self.prompt, steps=rng.randint(3, 25))
            self.cluster.loaded.eos = frozenset({stop})
            stopped, _ = self.run(name, self.prompt)
            self.cluster.loaded.eos = frozenset()
            second, last = self.run(name, follow, {"sampling.max_tokens": 40})
            fine = (
                got == expected
                and cancelled == expected[: len(cancelled)]
                and stopped == expected[: cut + 1]
                and second == after
            )
            self.tell(
                f"greedy {name}",
                fine,
                drafted=finished.stats.drafted,
                accepted=finished.stats.accepted,
                steps=finished.stats.steps,
                tree=not [c for c in finished.effective.changes if c.asked.endswith("(tree)")],
                effective=finished.effective.drafter,
                reused=last.stats.reused_tokens,
            )

    def beside(self, answer: Sequence[int]) -> dict[str, Any]:
        """How the answer differs from one process's: where, and how near the two were there."""
        other = _answer(self.alone, self.prompt, _settings(self.spec, "off"))[0]
        if other == answer:
            return {"flips_at": -1}
        at = next(i for i, (a, b) in enumerate(zip(answer, other)) if a != b)
        loaded = self.alone.loaded
        ids = mx.array([*self.prompt, *other[:at]])[None]
        row = loaded.model(ids, cache=loaded.new_cache())[0, -1].astype(mx.float32)
        best = mx.sort(row)[-2:].tolist()
        return {"flips_at": at, "margin": best[1] - best[0]}

    def sampled(self) -> None:
        """Drafted equals plain, token for token."""
        self.cluster.forget()
        expected, _ = self.run("off", self.prompt, _SAMPLED)
        for name in self.spec.drafters:
            self.cluster.forget()
            got, finished = self.run(name, self.prompt, _SAMPLED)
            self.tell(f"sampled {name}", got == expected, drafted=finished.stats.drafted)

    def sparse(self) -> None:
        """A long prompt read in part keeps what one process keeps; then a second turn."""
        long = _prompt(random.Random(3), self.spec.sparse)
        chosen = _settings(self.spec, "off", _SPARSE)
        kept, answers = [], []
        for engine in (self.cluster, self.alone):
            engine.forget()
            tokens, finished, events = _answer(engine, long, chosen)
            found = [each for each in events if isinstance(each, ReadingMap)]
            kept.append([each.kept for each in found[-1].passages] if found else [])
            answers.append((tokens, finished.stats.skipped_tokens))
        fine = kept[0] == kept[1] and any(kept[0]) and answers[0] == answers[1] and answers[0][1] > 0
        self.tell(
            "sparse", fine, skipped=answers[0][1], kept=sum(kept[0]), why=finished.effective.reading_reason
        )
        self.cluster.forget()
        self.run("off", long, _SPARSE)
        follow = [*long, *answers[0][0], *_prompt(random.Random(4), 30)]
        second, finished = self.run("off", follow, _SPARSE)
        for name in self.spec.drafters:
            self.cluster.forget()
            self.run("off", long, _SPARSE)
            got, finished = self.run(name, follow, _SPARSE)
            fine = got == second and finished.stats.reused_tokens > 0
            self.tell(f"sparse {name}", fine, reused=finished.stats.reused_tokens)

    def run(
        self, drafter: str, prompt: Sequence[int], values: dict[str, object] | None = None, steps: int = 10**9
    ) -> tuple[list[int], Finished]:
        chosen = _settings(self.spec, drafter, values or {})
        tokens, finished, _ = _answer(self.cluster, prompt, chosen, steps)
        return tokens, finished


_SPARSE: dict[str, object] = {
    "prefill.mode": "on",
    "prefill.scorer": "lexical",
    "prefill.keep_pct": 20,
    "prefill.chunk_tokens": 128,
    "sampling.max_tokens": 40,
}


def _settings(spec: Spec, drafter: str, values: dict[str, object] | None = None) -> Settings:
    chosen = {
        "drafting.drafter": drafter,
        "gate.mode": "always",
        "sampling.temperature": 0.0,
        "sampling.max_tokens": spec.tokens,
        "ngram_simple.n_min": 1,
        "ngram_mod.n": 4,
        "ngram_mod.slots": 4096,
        "cacheback.tree": "paper",  # whatever the steps cost here
        "cacheback.tree_tokens": 16,
        "cacheback.reserved_tokens": 4,
        "draft_model.model": spec.draft_model,
        **(values or {}),
    }
    return assign_all(Settings(), chosen.items())


def _answer(
    engine: Engine, prompt: Sequence[int], chosen: Settings, steps: int = 10**9
) -> tuple[list[int], Finished, list[Event]]:
    looks = iter(range(10**9))
    events = list(engine.generate_ids(prompt, chosen, lambda: next(looks) >= steps))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return [event.id for event in events if isinstance(event, Token)], finished, events


def _prompt(rng: random.Random, length: int) -> list[int]:
    phrases = [[rng.randrange(4, _VOCABULARY) for _ in range(rng.randint(2, 8))] for _ in range(4)]
    if length > 500:
        phrases = [[rng.randrange(4, _VOCABULARY) for _ in range(rng.randint(4, 12))] for _ in range(12)]
    prompt: list[int] = []
    while len(prompt) < length:
        prompt += rng.choice(phrases)
    return prompt


if __name__ == "__main__":
    raise SystemExit(main())

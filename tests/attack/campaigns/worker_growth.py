"""Sends one real worker many requests with all drafters and request kinds, and checks its memory.

Every kind of request runs once with every drafter before the baseline is taken, because the first use of
each allocates memory that the process keeps, such as a private table. The prefix cache has a small budget,
because it may grow up to it. Beyond that, resident memory may not exceed the maximum of the first half of
the cases by more than `_MORE_MB`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from core.drafting.registry import DRAFTERS
from core.errors import PromptTooLongError
from core.events import Cancel, Failed, Finished, Generate, Hello, LoadModel, ModelLoaded, Token
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.worker_talk import Broken, WorkerTalk, ask, talking

_MORE_MB = 8.0
_CACHE_MIB = 4
_KINDS = ("answer", "answer", "answer", "cancel", "refused", "apart", "goes on")
_DRAFTERS = [name for name, spec in DRAFTERS.items() if not spec.needs_proposer]


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with talking() as (talk, folder):
        talk.start()
        talk.until(Hello)
        talk.send(LoadModel(str(folder / "toy")))
        talk.until(ModelLoaded)
        _use_everything_once(talk)
        settled_mb = 0.0
        for place, case in enumerate(cases):
            chance = case_random("worker-growth", seed, case)
            fault = ""
            try:
                _ask_once(talk, chance, case)
            except Broken as broken:
                yield Outcome(case, str(broken))
                return
            held_mb = talk.rss_mb
            if place <= len(cases) // 2:
                settled_mb = max(settled_mb, held_mb)
            more_mb = max(0.0, held_mb - settled_mb)
            if more_mb > _MORE_MB:
                fault = f"the worker holds {more_mb:.0f} MB more than {settled_mb:.0f} MB at first"
            yield Outcome(case, fault, {"requests": 1}, {"held_mb": held_mb, "grown_mb": more_mb})


def _use_everything_once(talk: WorkerTalk) -> None:
    chance = random.Random(0)
    for number, (kind, drafter, temperature) in enumerate(
        itertools.product(dict.fromkeys(_KINDS), _DRAFTERS, (0.0, 0.8))
    ):
        _ask(talk, chance, f"warm-up {number}", kind, drafter, temperature, 80, longest=True)


def _ask_once(talk: WorkerTalk, chance: random.Random, case: int) -> None:
    kind = chance.choice(_KINDS)
    drafter = chance.choice(_DRAFTERS)
    temperature = chance.choice((0.0, 0.0, 0.8))
    _ask(talk, chance, str(case), kind, drafter, temperature, chance.choice((4, 24, 80)))


def _ask(
    talk: WorkerTalk,
    chance: random.Random,
    name: str,
    kind: str,
    drafter: str,
    temperature: float,
    max_tokens: int,
    longest: bool = False,
) -> None:
    talk.heard.clear()
    words = [chance.choice(("ferry", "keeper", "north", "mail", "evening")) for _ in range(40)]
    text = " ".join(words[: 40 if longest else chance.randint(1, 40)])
    request = ask(
        name,
        "word " * 400 if kind == "refused" else text,
        drafting__drafter=drafter,
        sampling__max_tokens=max_tokens,
        prefill__memory_mib=_CACHE_MIB,
        # The sentence encoder's weights and batches come and go, 13 MB at a time.
        prefill__scorer="lexical",
        sampling__temperature=temperature,
    )
    if kind in ("apart", "goes on"):
        begun = (10, 11, 12) if kind == "goes on" else ()
        request = Generate(name, request.messages, request.settings, kind == "apart", begun)
    talk.send(request)
    if kind == "cancel":
        talk.until((Token, Finished))
        talk.send(Cancel(name))
    if not any(isinstance(each, Finished) for each in talk.heard):
        ended = talk.until((Finished, Failed), 30)
        refused = isinstance(ended, Failed)
        if refused != (kind == "refused"):
            raise Broken(
                f"a question of kind {kind!r} {'failed: ' + ended.message if refused else 'was answered'}"
            )
        if isinstance(ended, Failed) and ended.code != PromptTooLongError.code:
            raise Broken(f"a prompt that is too long was refused by {ended.code!r}: {ended.message}")


CAMPAIGN = Campaign(
    "worker-growth",
    "After many answers of every kind one worker holds hardly more memory than after the first ones.",
    12,
    300,
    _run,
)

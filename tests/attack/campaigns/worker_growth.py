"""Asks one real worker for many answers, of all drafters and kinds, and looks at what it holds.

Answers, cancelled ones, refused ones, ones that go on, and ones apart, of prompts old and new. What is
kept of earlier chats is held small, as it may grow up to its budget. Of all else the worker must not hold
more than after the first half, when all that is made once has been made.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from core.drafting.registry import DRAFTERS
from core.errors import PromptTooLongError
from core.events import Cancel, Failed, Finished, Generate, Hello, LoadModel, ModelLoaded, Token
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.worker_talk import Broken, WorkerTalk, ask, talking

_MORE_MB = 8.0
_CACHE_MIB = 4


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with talking() as (talk, folder):
        talk.start()
        talk.until(Hello)
        talk.send(LoadModel(str(folder / "toy")))
        talk.until(ModelLoaded)
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


def _ask_once(talk: WorkerTalk, chance: random.Random, case: int) -> None:
    talk.heard.clear()
    kind = chance.choice(("answer", "answer", "answer", "cancel", "refused", "apart", "goes on"))
    words = [chance.choice(("ferry", "keeper", "north", "mail", "evening")) for _ in range(40)]
    text = " ".join(words[: chance.randint(1, 40)])
    drafter = chance.choice([name for name in DRAFTERS if name != "draft-model"])
    request = ask(
        str(case),
        "word " * 400 if kind == "refused" else text,
        drafting__drafter=drafter,
        sampling__max_tokens=chance.choice((4, 24, 80)),
        prefill__memory_mib=_CACHE_MIB,
        sampling__temperature=chance.choice((0.0, 0.0, 0.8)),
    )
    if kind in ("apart", "goes on"):
        begun = (10, 11, 12) if kind == "goes on" else ()
        request = Generate(str(case), request.messages, request.settings, kind == "apart", begun)
    talk.send(request)
    if kind == "cancel":
        talk.until((Token, Finished))
        talk.send(Cancel(str(case)))
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

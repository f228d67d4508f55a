"""A conversation in the decode bench: the same questions, one turn after the other, by both sides.

Each side keeps its cache from turn to turn, as people's chats do: Draftlight its sequence, mlx-lm
the prompt cache that it is handed back. Each turn's prompt holds mlx-lm's answers, so both read
the same text even if an answer once differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from core.bench.runs import BenchRun, draftlight, mlx_lm
from core.events import Message
from core.settings import Settings

if TYPE_CHECKING:  # importing it loads MLX, which a bench must prepare first
    from core.engine.engine import Engine


class TurnRuns(Struct, frozen=True):
    """One turn (from 1), both answers."""

    turn: int
    prompt_tokens: int
    baseline: BenchRun
    candidate: BenchRun


def converse(engine: Engine, questions: Sequence[str], settings: Settings) -> Iterator[TurnRuns]:
    """All turns, baseline first; nothing is kept from an earlier conversation."""
    from mlx_lm.models.cache import make_prompt_cache

    from core.models.prompt import render

    loaded = engine.loaded
    cache = make_prompt_cache(loaded.model)
    held: list[int] = []
    messages: list[Message] = []
    engine.forget(tables=True)
    for turn, question in enumerate(questions, 1):
        messages.append(Message("user", question))
        ids = render(loaded.tokenizer, messages, settings.chat.system_prompt).ids
        held, cache = _kept(loaded.model, held, cache, ids)
        baseline = mlx_lm(engine, ids[len(held) :], settings.sampling.max_tokens, prompt_cache=cache)
        # On stop the cache already holds the last token that was given out.
        held = [*ids, *baseline.tokens][: cache[0].offset]
        yield TurnRuns(turn, len(ids), baseline, draftlight(engine, ids, settings, forget=False))
        said = [token for token in baseline.tokens if token not in loaded.eos]
        messages.append(Message("assistant", loaded.tokenizer.decode(said)))


def _kept(model: Any, held: list[int], cache: list[Any], ids: Sequence[int]) -> tuple[list[int], list[Any]]:
    """mlx-lm's cache trimmed to what it shares with `ids`, and those tokens."""
    from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache

    shared = 0
    while shared < min(len(held), len(ids) - 1) and held[shared] == ids[shared]:
        shared += 1
    excess = len(held) - shared
    if excess and not can_trim_prompt_cache(cache):
        return [], make_prompt_cache(model)
    if excess:
        trim_prompt_cache(cache, excess)
    return held[:shared], cache

"""Reading on: what a context skipped and a later question makes relevant.

At each turn the new question scores all passages between the first and the last that were skipped. Those that
a fresh sparse reading would take for it and that were never read are newly relevant, the best first and not
more than a bound. How they come into the context is `core.prefill.reading`'s: inserted where they stand, or
quoted before the question. A draft model does not score them:
it would read what is to be saved. Worker's main thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from core.kv.positions import Columns
from core.models.loader import LoadedModel
from core.prefill.layout import Passages
from core.prefill.read import Positions
from core.prefill.scorers.scorer import Scored
from core.prefill.select import Selection
from core.settings.prefill import Prefill

# Of the tokens that a fresh reading would take: this share is read on in one turn.
_BOUND = 0.5
# Between quoted passages, in any language.
_LEFT_OUT = "\n[…]\n"
_AROUND_QUOTE_TOKENS = 8


class SkippedText(Struct, frozen=True):
    """All from the first skipped token to the last, as passages.

    `selection.kept` are those that were read, in part at least, or will be now, which `now` (bool) says;
    `chosen` (ascending) are the positions that will be; `ranked` all skipped ones, a passage an array, the
    best first.
    """

    selection: Selection
    now: np.ndarray[Any, Any]
    chosen: Positions
    ranked: list[Positions]


def skipped_text(
    columns: Columns, passages: Passages, scored: Scored, settings: Prefill, room_tokens: int
) -> SkippedText:
    """What of the skipped text is relevant for the question that `passages` are `scored` for.

    `columns` say what of the prompt is held; `passages` reach from the first skipped token to the last. What
    is chosen takes at most `room_tokens` when it is quoted.
    """
    gaps = columns.gaps()
    firsts, lengths, scores = passages.firsts, passages.lengths, scored.scores
    skipped = np.zeros(passages.end, dtype=np.bool_)
    skipped[gaps] = True
    left = np.add.reduceat(skipped.astype(np.int32), firsts)
    best = np.argsort(-scores, kind="stable")
    wanted = settings.keep_pct / 100 * float(lengths.sum())
    relevant = best[np.cumsum(lengths[best]) - lengths[best] < wanted]
    relevant = relevant[left[relevant] > 0]
    spent = np.cumsum(left[relevant] + _AROUND_QUOTE_TOKENS)
    now = np.zeros(len(firsts), dtype=np.bool_)
    if scored.stands_out:
        bound = _BOUND * wanted + _AROUND_QUOTE_TOKENS * np.arange(1, len(relevant) + 1)
        now[relevant[(spent - left[relevant] < bound) & (spent <= max(0, room_tokens))]] = True

    def skipped_of(at: int) -> Positions:
        first = int(firsts[at])
        return np.asarray(first + np.flatnonzero(skipped[first : first + lengths[at]]), np.int32)

    chosen = [skipped_of(int(at)) for at in np.flatnonzero(now)]
    shown = (scores / (scores.max(initial=0.0) or 1.0)).clip(0.0, 1.0).astype(np.float32)
    return SkippedText(
        Selection(firsts, firsts + lengths, (left < lengths) | now, shown),
        now,
        np.concatenate([np.empty(0, np.int32), *chosen]),
        [skipped_of(at) for at in best if left[at]],
    )


def excerpt(ids: Sequence[int], positions: Positions, loaded: LoadedModel) -> list[int]:
    """Token ids of a text that quotes the passages at `positions` of `ids`, with marked gaps.

    Control tokens without an embedding row are left out.
    """
    tokenizer = loaded.tokenizer
    runs = np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)
    texts = (tokenizer.decode([ids[at] for at in run]).strip() for run in runs)
    quoted = f"{_LEFT_OUT}{_LEFT_OUT.join(texts)}{_LEFT_OUT}\n".lstrip("\n")
    found = tokenizer.encode(quoted, add_special_tokens=False)
    return [int(token) for token in found if token < loaded.info.vocabulary]

"""Later turns: which passages that an earlier turn skipped are quoted before a new question.

At each turn the new question scores the passages between the first and the last skipped token. Those that a
fresh sparse reading would choose and that no turn has read are relevant; the best are quoted, up to a limit.
A draft model does not score them, as it would have to read the text that is to be skipped. Pure, but for the
tokenizer in `excerpt`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.kv.positions import Columns
from core.models.loader import LoadedModel
from core.prefill.layout import Passages
from core.prefill.read import Positions
from core.prefill.scorers.scorer import Scored
from core.settings.prefill import Prefill

# The share of the tokens that a fresh reading would choose which one turn quotes at most.
_LIMIT = 0.5
# Between quoted passages, in any language.
_LEFT_OUT = "\n[…]\n"
_AROUND_QUOTE_TOKENS = 8


def to_quote(
    columns: Columns, passages: Passages, scored: Scored, settings: Prefill, room_tokens: int
) -> Positions:
    """int32, ascending: the skipped positions that are relevant for the question that scored `passages`.

    `columns` name the positions that were read; `passages` reach from the first skipped token to the last.
    The quotation takes at most `room_tokens`.
    """
    firsts, lengths = passages.firsts, passages.lengths
    skipped = np.zeros(passages.end, dtype=np.bool_)
    skipped[columns.gaps()] = True
    left = np.add.reduceat(skipped.astype(np.int32), firsts)
    best = np.argsort(-scored.scores, kind="stable")
    wanted = settings.keep_pct / 100 * float(lengths.sum())
    relevant = best[np.cumsum(lengths[best]) - lengths[best] < wanted]
    relevant = relevant[left[relevant] > 0]
    if not scored.stands_out or not len(relevant):
        return np.empty(0, np.int32)
    spent = np.cumsum(left[relevant] + _AROUND_QUOTE_TOKENS)
    limit = _LIMIT * wanted + _AROUND_QUOTE_TOKENS * np.arange(1, len(relevant) + 1)
    chosen = np.zeros(len(firsts), dtype=np.bool_)
    chosen[relevant[(spent - left[relevant] < limit) & (spent <= max(0, room_tokens))]] = True
    in_chosen = np.zeros(passages.end, dtype=np.bool_)
    in_chosen[firsts[0] :] = np.repeat(chosen, lengths)
    return np.flatnonzero(skipped & in_chosen).astype(np.int32)


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

"""Acceptance of a verified draft. Pure; does not import MLX.

The target has chosen a token at every row of the block: `choices[0]` after the context, `choices[i + 1]`
after node i. From the root, the walk descends to the child that equals the choice, as long as there is one.
The choice where it ends is the step's last token. Every emitted token is thus the target's own choice given
the accepted path, so the output is that of plain decoding, whatever was drafted.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from core.drafting.draft import Draft


class Walk(Struct, frozen=True):
    """`path`: accepted node indices, in order. `last`: the target's own token after them.

    `tested`: nodes whose acceptance was decided: the accepted ones, and one rejected node if the walk ended
    at a row with another guess. `last` is None if the walk ended at a row whose choice is too close to call.
    """

    path: tuple[int, ...]
    last: int | None
    tested: int


def walk(
    draft: Draft,
    choices: Sequence[int],
    stops: frozenset[int] = frozenset(),
    close: Sequence[bool] | None = None,
) -> Walk:
    """Walks `draft` by `choices`, which has one more entry than the draft has nodes.

    A choice in `stops` ends the walk even if it was drafted, because nothing follows it; the step's last
    token is then the target's own. A row marked in `close` also ends the walk, without a choice.
    """
    path: list[int] = []
    node = -1
    tested = 0
    # Parents come before children, so one pass over the nodes is the whole walk.
    for index, (token, parent) in enumerate(zip(draft.tokens, draft.parents)):
        if parent != node:
            continue
        if choices[node + 1] in stops or (close and close[node + 1]):
            break
        if token == choices[node + 1]:
            path.append(index)
            node = index
            tested = len(path)
        else:
            tested = len(path) + 1
    undecided = bool(close and close[node + 1])
    return Walk(tuple(path), None if undecided else choices[node + 1], tested)

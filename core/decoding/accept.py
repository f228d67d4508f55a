"""The acceptor: walks a verified draft. Pure; no mlx.

The verifier has chosen a token at every node of the block: `choices[0]` after the context,
`choices[i + 1]` after node i. Starting at the root, the walk descends to the child that equals
the choice made there, as long as there is one. The choice at the end of the walk is the step's
last token. This is sample-and-compare: each emitted token is the verifier's own choice given
the accepted path, so the output is the plain loop's whatever was drafted.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from core.drafting.draft import Draft


class Walk(Struct, frozen=True):
    """`path`: accepted node indices, in order. `last`: the verifier's own token after them.

    `tested`: nodes whose fate the walk decided: the accepted ones, and one rejected guess if
    the walk ended where the draft had a different one. `last` is None if the walk ended at a
    row whose choice is too close to call.
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
    """Walk `draft` by `choices`, which has one entry more than the draft has nodes.

    A choice that is one of `stops` ends the walk even where it was guessed: nothing follows it,
    and the step's last token is the verifier's own. So does a choice marked in `close`, which
    then is nobody's.
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

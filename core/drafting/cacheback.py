"""cacheback: what recently followed, grown into a tree (Ma, Gim and Zhong: Cacheback).

A dynamic `LruTable`, filled from the prompt and then from each step's tokens by a sliding window
of LL + FL tokens, and an optional `FrozenTable`. What grows of them is `cacheback.tree`:

`planned`, the default: best first, each guess with how likely it is (`follower_odds`), so that the
planner verifies the part that pays on this machine. The paper's tree is for GPUs with idle
arithmetic: on recorded answers it is 0.56 and 0.23 times as fast as plain decoding at a CPU's
and Apple's costs, this one 1.51 and 1.49 times.

`paper`: breadth first. The last LL tokens of a branch are looked up and each follower, FL tokens,
becomes a branch below it. First the dynamic table until it has no more to say, then the frozen
one at the same places and at the ends of what it adds. CRT of the TDL tokens are kept from the
first level. All of it is verified.

Invariants: parents before children, no two equal siblings, at most min(budget, TDL − 1) nodes.
Knows no model, no cache and no machine.

Where the paper leaves something open or this differs, and how it was decided:
- TDL counts tokens without KV, too. Here the accepted path is always in the KV cache, so that is
  one token, the root: a tree has at most TDL − 1 nodes. Whoever verifies more passes a smaller budget.
- A budget below TDL − 1 shrinks CRT in proportion, else a small block would keep everything for
  a second level that has no first.
- "First level" is read as the followers of the root, FL tokens deep, not the root's children:
  these are what can exhaust TDL in one query (FC · FL = 384 > 96). Both tables share it.
- Followers with a common beginning share nodes. The paper does not say; equal siblings could not
  both be walked to and would only widen the block.
- Where a follower does not fit, its beginning is still drafted, for a branch may end anywhere.
  Such a stump is not looked up further.
- Followers of the dynamic table come most recent first, of the frozen one most frequent first.
  The paper names no order; this is the order in which each table would keep them.
- A branch the frozen table added is not looked up in the dynamic table again, which follows the
  paper's sentence that the frozen table grows the tree further after the dynamic one formed it.
- Where only chains can be verified (`tree=False`), the paper's tree becomes one look-up after the
  other, each taking the first follower of the dynamic table, or of the frozen one where that has none.
- The planned tree looks up every branch at every node, both tables at once, and knows no CRT.
- The table starts empty with each request, as in the paper's evaluation, and is filled from
  the whole prompt, which in a chat holds the earlier turns.

FollowerOdds: how likely each token is to come next, from leader → followers tables. Cacheback's.

Tables hold no counts, but more than the followers of the last LL tokens: a guess is *supported* as
far back as followers of earlier leaders spell it. If "the fox ran fast" was seen, then after "the
fox" the guess "ran" is a follower of "fox" and also how the follower of "the" goes on: support 2,
which is a match of LL + 1 tokens. Support ends at FL.

A guess's log-odds are a sum: its support in the dynamic table, its place among the guesses with
that support (most recent first), how many of them there are, how much longer the longest support
of another guess is; and the same of the frozen table, most frequent first. A kind (support, and
whether it is the newest) is then corrected by what came of it in this answer (`calibration`).

The weights are logistic regressions, as in `core.bench.replay.fit`, on the even-numbered of 39 recorded
answers of a 135M model with LL 1 and FL 3, without a frozen table and with the shipped one. Fitted
on the odd-numbered ones the log loss of the others is the same within 2%.

Knows no tree, no budget and no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, Protocol

from msgspec import Struct

from core.drafting.calibration import LEARNED_KIND, Calibration, log2_1
from core.drafting.draft import EMPTY, Draft, Drafter, Grown, RejectedRow, grow
from core.drafting.follower_tables import FrozenTable, Gram, LruTable, pairs
from core.events import Occupancy
from core.settings.drafting import Cacheback, check_cacheback

# A guess that is less likely than this to be reached is not made: auto's.
_LEAST_CHANCE = 0.02


class _Tree:
    """A draft while it grows. `first_level` counts the nodes that were added by looking up the root."""

    __slots__ = ("_index", "ends", "first_level", "parents", "size_limit", "tokens")

    def __init__(self, size_limit: int, root_leader: Gram) -> None:
        self.size_limit = size_limit
        self.tokens: list[int] = []
        self.parents: list[int] = []
        # Where look-ups happen: node → its last tokens, in the order of growth. −1 is the root.
        self.ends: dict[int, Gram] = {-1: root_leader}
        self.first_level = 0
        self._index: dict[tuple[int, int], int] = {}

    def room(self) -> int:
        return self.size_limit - len(self.tokens)

    def add(self, node: int, follower: Iterable[int], room: int) -> int | None:
        """Add a branch below `node` with at most `room` new nodes. Its last node, or None if it was cut."""
        index, tokens, parents = self._index, self.tokens, self.parents
        for token in follower:
            key = (node, token)
            child = index.get(key)
            if child is None:
                if not room:
                    return None
                room -= 1
                child = index[key] = len(tokens)
                tokens.append(token)
                parents.append(node)
            node = child
        return node


class CachebackDrafter(Drafter):
    """One request's dynamic table beside an optional frozen one of the same tokenizer family.

    Raises `SettingError` if CRT leaves no first level.
    """

    def __init__(self, settings: Cacheback, frozen: FrozenTable | None = None, *, tree: bool = True) -> None:
        check_cacheback(settings)
        self._settings = settings
        self._frozen = frozen if settings.mode != "dynamic" else None
        self._branches = tree
        self._tail: list[int] = []
        # The last planned draft, and the guesses at its root: what comes is learned from.
        self._here: list[OddsGuess] = []
        self._grown: Grown[OddsGuess] = Grown()
        self._reset()

    def begin(self, prompt: Sequence[int]) -> None:
        self._reset()
        self.observe(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        self._learn(tokens)
        leader, follower = self._settings.leader_tokens, self._settings.follower_tokens
        joined = [*self._tail, *tokens]
        if self._settings.mode != "frozen":
            insert = self._table.insert
            for gram, next_gram in pairs(joined, leader, follower):
                insert(gram, next_gram)
        # One token short of a window: the next token completes exactly the first new pair.
        self._tail = joined[-(leader + follower - 1) :]

    def observe_top(self, ids: Sequence[Sequence[int]], rejected: Sequence[RejectedRow] = ()) -> None:
        """Unused: the table holds only what was said."""

    def draft(self, budget: int) -> Draft:
        settings = self._settings
        total = min(budget, settings.tree_tokens - 1)
        if total <= 0 or len(self._tail) < settings.leader_tokens:
            return EMPTY
        if settings.tree == "planned":
            return self._likeliest(total)
        tree = _Tree(total, tuple(self._tail[-settings.leader_tokens :]))
        if self._branches:
            first_level = total - settings.reserved_tokens * total // (settings.tree_tokens - 1)
            for source in self._sources():
                self._grow(tree, source, first_level)
        else:
            self._grow_chain(tree)
        return Draft(tuple(tree.tokens), tuple(tree.parents))

    def feedback(self, draft: Draft, accepted: int) -> None:
        """Unused: what was accepted enters the table when it is observed, and is learned from then."""

    def occupancy(self) -> Occupancy:
        """Leaders in the dynamic table."""
        return Occupancy(len(self._table), self._table.leader_capacity)

    def _sources(self) -> list[Source]:
        dynamic: list[Source] = [self._table] if self._settings.mode != "frozen" else []
        return dynamic if self._frozen is None else [*dynamic, self._frozen]

    def _likeliest(self, most: int) -> Draft:
        """The likeliest `most` guesses, each with how likely it is."""
        odds, tail = self._odds, tuple(self._tail)
        self._here = odds.guesses(tail)
        self._grown = grow(
            tail,
            self._here,
            odds.after,
            odds.guesses,
            most=most,
            least=_LEAST_CHANCE,
            alternatives=None if self._branches else 1,
        )
        return self._grown.draft

    def _learn(self, tokens: Sequence[int]) -> None:
        """What came where the last planned draft had guesses."""
        node: int | None = -1
        for token in tokens:
            if node is None:
                break
            guesses = self._here if node < 0 else self._grown.looked.get(node, [])
            self._odds.learn(guesses, token)
            node = self._grown.nodes.get((node, token))
        self._here, self._grown = [], Grown()

    def _grow(self, tree: _Tree, source: Source, first_level: int) -> None:
        """Breadth first over all branch ends, those found on the way included."""
        queue = list(tree.ends.items())
        for node, leader in queue:
            if not tree.room():
                return
            for follower in source.followers(leader):
                room = tree.room() if node >= 0 else min(tree.room(), first_level - tree.first_level)
                if room <= 0:
                    break
                before = len(tree.tokens)
                end = tree.add(node, follower, room)
                if node < 0:
                    tree.first_level += len(tree.tokens) - before
                if end is not None and end not in tree.ends:
                    tree.ends[end] = last = (leader + follower)[-len(leader) :]
                    queue.append((end, last))

    def _grow_chain(self, tree: _Tree) -> None:
        sources = self._sources()
        node: int | None = -1
        leader = tree.ends[-1]
        while node is not None and tree.room():
            follower = next(chain.from_iterable(source.followers(leader) for source in sources), None)
            if follower is None:
                return
            node = tree.add(node, follower, tree.room())
            leader = (leader + follower)[-len(leader) :]

    def _reset(self) -> None:
        settings = self._settings
        self._table = LruTable(settings.leader_capacity, settings.follower_capacity)
        self._tail = []
        dynamic = self._table if settings.mode != "frozen" else None
        self._odds = FollowerOdds(dynamic, self._frozen, settings.leader_tokens, settings.follower_tokens)
        self._here, self._grown = [], Grown()


class Source(Protocol):
    """A table of either kind."""

    def followers(self, leader: Gram) -> Iterator[Gram]: ...


class FollowerWeights(Struct, frozen=True):
    """What each piece of evidence adds to the log-odds of a guess."""

    anything: float
    # Support of 1, 2, and 3 or more in the dynamic table.
    support: tuple[float, float, float]
    newest: float
    rank: float  # · log2(1 + guesses with that support that are more recent)
    fan: float  # · log2 of how many have that support
    outdone: float  # · how much longer the longest support is
    unseen: float = 0.0  # · log2(1 + the longest support), of what the dynamic table has not
    # ---- the frozen table
    frozen_support: tuple[float, float, float] = (0.0, 0.0, 0.0)
    frozen_rank: float = 0.0
    frozen_fan: float = 0.0
    both: float = 0.0


WEIGHTS = FollowerWeights(0.057, (-0.579, -0.184, 0.82), 0.582, -0.344, -0.8, -1.473)
WEIGHTS_FROZEN = FollowerWeights(
    anything=-1.133,
    support=(0.246, 0.516, 1.607),
    newest=0.854,
    rank=-0.117,
    fan=-0.842,
    outdone=-1.433,
    frozen_support=(-0.42, -0.024, -0.685),
    frozen_rank=-0.15,
    frozen_fan=-0.373,
    both=2.373,
)
_MOST_SUPPORT = (LEARNED_KIND - 1) // 2
# The likeliest ones at a place are learned from; the rest say nothing about what is drafted.
_LEARNED = 8


class OddsGuess(NamedTuple):
    """`token` comes with `probability`; `log_odds` are before the correction of its `kind`."""

    token: int
    probability: float
    log_odds: float
    kind: int


class _Place(NamedTuple):
    """Of one guess in one table: its support, and its place among the `fan` guesses with that support."""

    support: int
    rank: int
    fan: int


class FollowerOdds:
    """Of one request. `frozen` is None where there is no such table, `dynamic` where it is not asked."""

    def __init__(
        self, dynamic: Source | None, frozen: Source | None, leader_tokens: int, follower_tokens: int
    ) -> None:
        self._dynamic = dynamic
        self._frozen = frozen
        self._leader_tokens = leader_tokens
        self._follower_tokens = follower_tokens
        self._weights = WEIGHTS if frozen is None else WEIGHTS_FROZEN
        self._calibration = Calibration()

    @property
    def tail_tokens(self) -> int:
        """How many of the latest tokens tell everything: LL + FL − 1."""
        return self._leader_tokens + self._follower_tokens - 1

    def after(self, tail: Gram, token: int) -> Gram:
        """The latest tokens behind `token`."""
        return (*tail, token)[-self.tail_tokens :]

    def guesses(self, tail: Gram) -> list[OddsGuess]:
        """What may follow `tail`, likeliest first."""
        dynamic, frozen = self._places(self._dynamic, tail), self._places(self._frozen, tail)
        longest = max((place.support for place in dynamic.values()), default=0)
        found = []
        # Tokens of the dynamic table first, most recent first: equals keep this order.
        for token in dict.fromkeys((*dynamic, *frozen)):
            here = dynamic.get(token)
            log_odds = self._log_odds(here, frozen.get(token), longest)
            kind = LEARNED_KIND
            if here is not None:
                kind = 2 * min(here.support, _MOST_SUPPORT) + (here.rank == 0)
            found.append(OddsGuess(token, self._calibration.probability(log_odds, kind), log_odds, kind))
        found.sort(key=attrgetter("probability"), reverse=True)
        return found

    def learn(self, guesses: Sequence[OddsGuess], token: int) -> None:
        """Where these were the guesses, `token` came."""
        for guess in guesses[:_LEARNED]:
            self._calibration.learn(guess.log_odds, guess.kind, guess.token == token)

    def _log_odds(self, here: _Place | None, frozen: _Place | None, longest: int) -> float:
        weights = self._weights
        total = weights.anything
        if here is None:
            total += weights.unseen * log2_1(longest)
        else:
            total += weights.support[min(here.support, 3) - 1] + weights.newest * (here.rank == 0)
            total += weights.rank * log2_1(here.rank) + weights.fan * log2_1(here.fan - 1)
            total += weights.outdone * (longest - here.support)
        if frozen is not None:
            total += weights.frozen_support[min(frozen.support, 3) - 1]
            total += weights.frozen_rank * log2_1(frozen.rank) + weights.frozen_fan * log2_1(frozen.fan - 1)
            total += weights.both * (here is not None)
        return total

    def _places(self, source: Source | None, tail: Gram) -> dict[int, _Place]:
        """Each guess of one table, the longest support first."""
        found: dict[int, _Place] = {}
        if source is None:
            return found
        most = min(self._follower_tokens, len(tail) - self._leader_tokens + 1)
        for support in range(most, 0, -1):
            end = len(tail) - support + 1
            said = tail[end:]
            grams = source.followers(tail[end - self._leader_tokens : end])
            tokens = dict.fromkeys(gram[support - 1] for gram in grams if gram[: support - 1] == said)
            for rank, token in enumerate(tokens):
                if token not in found:
                    found[token] = _Place(support, rank, len(tokens))
        return found

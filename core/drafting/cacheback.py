"""`cacheback`: recent continuations from leader → follower tables, as a tree (Ma, Gim and Zhong: Cacheback).

A dynamic `LruTable` is filled from the prompt and from each step's tokens by a sliding window of LL + FL
tokens. A `FrozenTable` is optional. `cacheback.tree` chooses the tree:

`planned` (default): grown best first with a probability per guess (`FollowerGuesses`), so the planner
verifies the part that pays on this machine. The paper's tree is meant for GPUs with idle arithmetic units: on
recorded answers it runs at 0.56 and 0.23 times the speed of plain decoding at a CPU's and Apple's costs, the
planned tree at 1.51 and 1.49.

`paper`: grown breadth first. The last LL tokens of a branch are looked up, and each follower of FL tokens
becomes a branch below it: first from the dynamic table until it has no more followers, then from the frozen
table at the same nodes and at the ends of the branches it adds. CRT of the TDL tokens are reserved for deeper
levels. The whole tree is verified.

Invariants: parents precede children, siblings differ, and there are at most min(budget, TDL − 1) nodes. Does
not depend on the model, the KV cache or the machine.

Decisions where the paper is silent, and deviations:
- TDL includes tokens without KV entries. Here the accepted path is always in the KV cache, so only the root
  counts: a tree has at most TDL − 1 nodes. A caller that verifies more tokens passes a smaller budget.
- A budget below TDL − 1 reduces CRT in proportion. Otherwise a small block would reserve all nodes for a
  second level without a first.
- “First level” means the followers of the root, FL tokens deep, not the root's children: these can exhaust
  TDL in one query (FC · FL = 384 > 96). Both tables share the level.
- Followers with a common prefix share nodes. Equal siblings would only widen the block.
- If a follower does not fit, its prefix is drafted, because a branch may end anywhere. A truncated branch is
  not looked up further.
- Followers of the dynamic table come most recent first, those of the frozen table most frequent first: the
  order in which each table would keep them.
- A branch that the frozen table added is not looked up in the dynamic table again. The paper says that the
  frozen table extends the tree after the dynamic table has formed it.
- If only chains can be verified (`tree=False`), the paper's tree becomes a sequence of look-ups. Each takes
  the first follower of the dynamic table, or of the frozen table if the dynamic one has none.
- The planned tree looks up every branch at every node in both tables and has no CRT.
- The table starts empty with each request, as in the paper's evaluation, and is filled from the whole prompt,
  which includes the earlier turns of a chat.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, Protocol

from msgspec import Struct

from core.drafting.calibration import log2_1
from core.drafting.draft import EMPTY, NO_FACTS, Draft, Drafter, Facts, GrownDraft, Guess, grow
from core.drafting.odds import STRENGTH, Odds
from core.events import Occupancy
from core.settings.drafting import Cacheback, check_cacheback

# ---- tables: leaders and followers are tuples of ids of any length


Gram = tuple[int, ...]


class LruTable:
    """At most `leader_capacity` leaders with at most `follower_capacity` followers each, least recently used
    first out.

    Recency (Cacheback, §3.1): a query or an insert renews a leader, only an insert renews a follower, and
    followers compete only with followers of the same leader. Every operation is O(1).
    """

    def __init__(self, leader_capacity: int, follower_capacity: int) -> None:
        self.leader_capacity = leader_capacity
        self.follower_capacity = follower_capacity
        # Oldest first at both levels.
        self._leaders: OrderedDict[Gram, OrderedDict[Gram, None]] = OrderedDict()

    def __len__(self) -> int:
        """Number of leaders in the table."""
        return len(self._leaders)

    def insert(self, leader: Gram, follower: Gram) -> None:
        """Records that `follower` followed `leader`; both become the most recent."""
        leaders = self._leaders
        followers = leaders.get(leader)
        if followers is None:
            if len(leaders) >= self.leader_capacity:
                leaders.popitem(last=False)
            leaders[leader] = OrderedDict({follower: None})
            return
        leaders.move_to_end(leader)
        if follower in followers:
            followers.move_to_end(follower)
            return
        if len(followers) >= self.follower_capacity:
            followers.popitem(last=False)
        followers[follower] = None

    def followers(self, leader: Gram) -> Iterator[Gram]:
        """The followers of `leader`, most recent first; the leader becomes the most recent.

        Lazy: taking a few followers costs only those. Do not insert while iterating.
        """
        followers = self._leaders.get(leader)
        if followers is None:
            return iter(())
        self._leaders.move_to_end(leader)
        return reversed(followers)


class FrozenTable:
    """Leaders and followers counted beforehand; never changes (Cacheback, §4).

    `entries` maps leaders to followers, most frequent first; it is not copied. Ids belong to one tokenizer
    family, which the loader of a file checks.
    """

    def __init__(self, entries: Mapping[Gram, tuple[Gram, ...]]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        """Number of leaders in the table."""
        return len(self._entries)

    def followers(self, leader: Gram) -> Iterator[Gram]:
        """The followers of `leader`, most frequent first."""
        return iter(self._entries.get(leader, ()))

    def entries(self) -> Mapping[Gram, tuple[Gram, ...]]:
        """The whole content."""
        return self._entries


def pairs(tokens: Sequence[int], leader_tokens: int, follower_tokens: int) -> Iterator[tuple[Gram, Gram]]:
    """Sliding window over `tokens`: each leader with the complete follower after it, in order."""
    for start in range(len(tokens) - leader_tokens - follower_tokens + 1):
        middle = start + leader_tokens
        yield tuple(tokens[start:middle]), tuple(tokens[middle : middle + follower_tokens])


# ---- drafter


# Minimum path probability of a drafted token, as in `auto`.
_MIN_PROBABILITY = 0.02


class _Tree:
    """A draft under construction. `first_level` counts the nodes added by looking up the root."""

    __slots__ = ("_index", "ends", "first_level", "parents", "size_limit", "tokens")

    def __init__(self, size_limit: int, root_leader: Gram) -> None:
        self.size_limit = size_limit
        self.tokens: list[int] = []
        self.parents: list[int] = []
        # Look-up positions: node → its last tokens, in order of growth. −1 is the root.
        self.ends: dict[int, Gram] = {-1: root_leader}
        self.first_level = 0
        self._index: dict[tuple[int, int], int] = {}

    def free_nodes(self) -> int:
        return self.size_limit - len(self.tokens)

    def add(self, node: int, follower: Iterable[int], free_nodes: int) -> int | None:
        """Adds a branch below `node` with at most `free_nodes` new nodes. Returns its last node, None if it
        was truncated.
        """
        index, tokens, parents = self._index, self.tokens, self.parents
        for token in follower:
            key = (node, token)
            child = index.get(key)
            if child is None:
                if not free_nodes:
                    return None
                free_nodes -= 1
                child = index[key] = len(tokens)
                tokens.append(token)
                parents.append(node)
            node = child
        return node


class CachebackDrafter(Drafter):
    """A dynamic table per request, and an optional frozen table of the same tokenizer family.

    Raises `SettingError` if CRT leaves no nodes for the first level.
    """

    def __init__(self, settings: Cacheback, frozen: FrozenTable | None = None, *, tree: bool = True) -> None:
        check_cacheback(settings)
        self._settings = settings
        self._frozen = frozen if settings.mode != "dynamic" else None
        self._branches = tree
        self._tail: list[int] = []
        self._grown = GrownDraft()  # the last planned draft, whose outcome `observe` learns from
        self._reset()

    def begin(self, prompt: Sequence[int], facts: Facts = NO_FACTS) -> None:
        self._reset()
        self.observe(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        for token, guesses in self._grown.outcomes(tokens):
            self._guesses.learn(guesses or (), token)
        self._grown = GrownDraft()
        leader, follower = self._settings.leader_tokens, self._settings.follower_tokens
        joined = [*self._tail, *tokens]
        if self._settings.mode != "frozen":
            insert = self._table.insert
            for gram, next_gram in pairs(joined, leader, follower):
                insert(gram, next_gram)
        # One token short of a window: the next token completes exactly the first new pair.
        self._tail = joined[-(leader + follower - 1) :]

    def draft(self, budget: int) -> Draft:
        settings = self._settings
        total = min(budget, settings.tree_tokens - 1)
        if total <= 0 or len(self._tail) < settings.leader_tokens:
            return EMPTY
        if settings.tree == "planned":
            return self._planned_draft(total)
        tree = _Tree(total, tuple(self._tail[-settings.leader_tokens :]))
        if self._branches:
            first_level = total - settings.reserved_tokens * total // (settings.tree_tokens - 1)
            for source in self._sources():
                self._grow(tree, source, first_level)
        else:
            self._grow_chain(tree)
        return Draft(tuple(tree.tokens), tuple(tree.parents))

    def occupancy(self) -> Occupancy:
        """Leaders in the dynamic table."""
        return Occupancy(len(self._table), self._table.leader_capacity)

    def _sources(self) -> list[Source]:
        dynamic: list[Source] = [self._table] if self._settings.mode != "frozen" else []
        return dynamic if self._frozen is None else [*dynamic, self._frozen]

    def _planned_draft(self, most: int) -> Draft:
        """The draft of the most probable guesses, at most `most` nodes, with confidences."""
        self._grown = grow(
            tuple(self._tail),
            self._guesses.after,
            self._guesses.guesses,
            max_nodes=most,
            min_probability=_MIN_PROBABILITY,
            alternatives=None if self._branches else 1,
        )
        return self._grown.draft

    def _grow(self, tree: _Tree, source: Source, first_level: int) -> None:
        """Grows the tree breadth first from all branch ends, including those added on the way."""
        queue = list(tree.ends.items())
        for node, leader in queue:
            if not tree.free_nodes():
                return
            for follower in source.followers(leader):
                free_nodes = (
                    tree.free_nodes() if node >= 0 else min(tree.free_nodes(), first_level - tree.first_level)
                )
                if free_nodes <= 0:
                    break
                before = len(tree.tokens)
                end = tree.add(node, follower, free_nodes)
                if node < 0:
                    tree.first_level += len(tree.tokens) - before
                if end is not None and end not in tree.ends:
                    tree.ends[end] = last = (leader + follower)[-len(leader) :]
                    queue.append((end, last))

    def _grow_chain(self, tree: _Tree) -> None:
        sources = self._sources()
        node: int | None = -1
        leader = tree.ends[-1]
        while node is not None and tree.free_nodes():
            follower = next(chain.from_iterable(source.followers(leader) for source in sources), None)
            if follower is None:
                return
            node = tree.add(node, follower, tree.free_nodes())
            leader = (leader + follower)[-len(leader) :]

    def _reset(self) -> None:
        settings = self._settings
        self._table = LruTable(settings.leader_capacity, settings.follower_capacity)
        self._tail = []
        dynamic = self._table if settings.mode != "frozen" else None
        self._guesses = FollowerGuesses(settings, dynamic, self._frozen)
        self._grown = GrownDraft()


class Source(Protocol):
    """A dynamic or frozen table."""

    def followers(self, leader: Gram) -> Iterator[Gram]: ...


class FollowerWeights(Struct, frozen=True):
    """Log-odds weights of each kind of evidence."""

    anything: float
    # Support of 1, of 2, and of 3 or more in the dynamic table.
    support: tuple[float, float, float]
    newest: float
    rank: float  # × log2(1 + more recent guesses with that support)
    fan: float  # × log2(guesses with that support)
    outdone: float  # × (longest support of any guess − own support)
    unseen: float = 0.0  # × log2(1 + longest support), for guesses missing in the dynamic table
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
# Kinds of guesses: in the frozen table only, or 2 · support + (1 for the most recent).
_FROZEN_KIND = 0
_MAX_SUPPORT = 5
# Only the most probable guesses of a position are learned from; others are never drafted.
_LEARNED = 8


class _TableRank(NamedTuple):
    """A guess in one table: its support, and its rank among the `fan` guesses with that support."""

    support: int
    rank: int
    fan: int


class FollowerGuesses:
    """Probabilities of the next token from leader → follower tables, for one request.

    The tables hold no counts, but more evidence than the followers of the last LL tokens. A guess has support
    s if it continues the followers of leaders s tokens back: after “the fox ran fast”, the guess “ran” after
    “the fox” is a follower of “fox” and also continues the follower of “the”. That is support 2, a match of
    LL + 1 tokens. Support is at most FL.

    A guess's log-odds sum its support in the dynamic table, its recency rank among guesses with that support,
    their number, and how much longer another guess's support is, and the same for the frozen table with
    frequency ranks. `Odds` then correct each kind by its outcomes in this answer.

    The weights are logistic regressions (`tests/tuning/fit.py`) on the even-numbered of 39 recorded answers
    of a 135M model with LL 1 and FL 3, without a frozen table and with the shipped one. Weights fitted on the
    odd-numbered answers give the same log loss on the others within 2%.

    `frozen` and `dynamic` are None if that table is not used.
    """

    def __init__(self, settings: Cacheback, dynamic: Source | None, frozen: Source | None) -> None:
        self._dynamic = dynamic
        self._frozen = frozen
        self._leader_tokens = settings.leader_tokens
        self._follower_tokens = settings.follower_tokens
        self._weights = WEIGHTS if frozen is None else WEIGHTS_FROZEN
        self._odds = Odds((STRENGTH,) * (2 * _MAX_SUPPORT + 2), each=2.0)

    @property
    def tail_tokens(self) -> int:
        """Latest tokens that determine the guesses: LL + FL − 1."""
        return self._leader_tokens + self._follower_tokens - 1

    def after(self, tail: Gram, token: int) -> Gram:
        """The latest tokens once `token` is appended to `tail`."""
        return (*tail, token)[-self.tail_tokens :]

    def guesses(self, tail: Gram) -> list[Guess]:
        """Guesses after `tail`, most probable first."""
        dynamic, frozen = self._table_ranks(self._dynamic, tail), self._table_ranks(self._frozen, tail)
        longest = max((place.support for place in dynamic.values()), default=0)
        found = []
        # Tokens of the dynamic table first, most recent first: the stable sort keeps this order for equal
        # probabilities.
        for token in dict.fromkeys((*dynamic, *frozen)):
            here = dynamic.get(token)
            log_odds = self._log_odds(here, frozen.get(token), longest)
            kind = _FROZEN_KIND
            if here is not None:
                kind = 2 * min(here.support, _MAX_SUPPORT) + (here.rank == 0)
            found.append(Guess(token, self._odds.probability(log_odds, kind), log_odds, kind))
        found.sort(key=attrgetter("probability"), reverse=True)
        return found

    def learn(self, guesses: Sequence[Guess], token: int) -> None:
        """Records that `token` followed a position with these `guesses`."""
        for guess in guesses[:_LEARNED]:
            self._odds.learn(guess.log_odds, guess.kind, guess.token == token)

    def _log_odds(self, here: _TableRank | None, frozen: _TableRank | None, longest: int) -> float:
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

    def _table_ranks(self, source: Source | None, tail: Gram) -> dict[int, _TableRank]:
        """The rank of each guess of one table, longest support first."""
        found: dict[int, _TableRank] = {}
        if source is None:
            return found
        most = min(self._follower_tokens, len(tail) - self._leader_tokens + 1)
        for support in range(most, 0, -1):
            end = len(tail) - support + 1
            suffix = tail[end:]
            grams = source.followers(tail[end - self._leader_tokens : end])
            tokens = dict.fromkeys(gram[support - 1] for gram in grams if gram[: support - 1] == suffix)
            for rank, token in enumerate(tokens):
                if token not in found:
                    found[token] = _TableRank(support, rank, len(tokens))
        return found

"""From the message tree of another program to chats with turns and versions.

Draftlight's chats are sequences of turns; the versions of a turn are wordings of its question or answer.
A branch without later messages becomes a version. A branch that continues becomes a version too, and in
addition a separate chat with the messages before it, as when an earlier message is edited in Draftlight.

Nothing here is recursive and all copies are bounded: chats from other programs may have any shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from core.events import Attachment

# Answers of one turn, chats of one conversation, and messages that all of them may repeat.
MOST_VERSIONS = 100
MOST_BRANCHES = 50
_MOST_REPEATED = 20_000
# A message before the first question needs one.
NO_QUESTION = "…"


class Node(Struct):
    """A message. `parent` is the id of the message before it.

    `role` "none": a message without visible content, such as the root of a tree. Tools are part of answers.
    """

    id: str
    parent: str
    role: Literal["user", "answer", "none"]
    text: str = ""
    thought: str = ""
    attachments: tuple[Attachment, ...] = ()
    time_s: float | None = None


class ArchivedVersion(Struct, frozen=True):
    """A question and its answer; `time_s` is the question's Unix time."""

    id: str
    question: str
    answer: str = ""
    attachments: tuple[Attachment, ...] = ()
    time_s: float | None = None


class ArchivedTurn(Struct, frozen=True):
    """All versions of a turn; `place` is the index of the displayed one."""

    versions: tuple[ArchivedVersion, ...]
    place: int = 0


class ArchivedPath(Struct, frozen=True):
    """One chat of a conversation. `branch` is 0 for the displayed one, else the number of the branch."""

    id: str
    branch: int
    turns: tuple[ArchivedTurn, ...]


class _Option(NamedTuple):
    """A question (None: the tree begins with an answer) with one of its answers, which ends at `end`.

    `following`: the first messages of the turns after it.
    """

    question: int | None
    end: int
    following: list[int]


class Tree:
    """The messages of one conversation. `current` is the id of the last displayed one; empty if unknown.

    `lost_versions` counts versions beyond the bounds, `lost_branches` branches; complete after `paths()`.
    """

    def __init__(self, chat_id: str, nodes: Sequence[Node], current: str = "") -> None:
        self._chat_id = chat_id
        self._nodes = nodes
        self._children: list[list[int]] = [[] for _ in nodes]
        self._parents = [-1] * len(nodes)
        self._roots: list[int] = []
        self.lost_versions = self.lost_branches = 0
        self._repeated = 0
        self._link()
        self._shown = self._path_to(self._last_shown(current))

    def paths(self) -> Iterator[ArchivedPath]:
        """Yields the displayed chat, then one for each branch that continues."""
        waiting: list[tuple[list[ArchivedTurn], _Option | None, list[_Option]]] = []
        if options := self._options(self._flat(self._roots)):
            waiting.append(([], None, options))
        branch = 0
        while waiting:
            turns, only, options = waiting.pop(0)
            chat_id = self._chat_id if not branch else _hashed(self._chat_id, only and self._name(only))
            turns = list(turns)
            if only:
                turns.append(ArchivedTurn((self._version(chat_id, only),)))
                turns = [self._renamed(chat_id, turn) for turn in turns]
            while options:
                shown = self._shown_of(options)
                for place, option in enumerate(options):
                    if place != shown and option.following:
                        self._repeated += len(turns) + 1
                        if branch + len(waiting) < MOST_BRANCHES and self._repeated < _MOST_REPEATED:
                            before = [ArchivedTurn((turn.versions[turn.place],)) for turn in turns]
                            waiting.append((before, option, self._options(option.following)))
                        else:
                            self.lost_branches += 1
                versions = tuple(self._version(chat_id, option) for option in options)
                turns.append(ArchivedTurn(versions, shown))
                options = self._options(options[shown].following)
            yield ArchivedPath(chat_id, branch, tuple(turns))
            branch += 1

    # ---- the tree

    def _link(self) -> None:
        """Fills `_children`, `_parents` and `_roots`; unknown parents and cycles make a message a root."""
        indices = {node.id: index for index, node in enumerate(self._nodes)}
        for index, node in enumerate(self._nodes):
            parent = indices.get(node.parent, -1) if node.parent else -1
            self._parents[index] = -1 if parent == index else parent
        reached = [False] * len(self._nodes)
        for index in range(len(self._nodes)):
            path = []
            while index >= 0 and not reached[index]:
                reached[index] = True
                path.append(index)
                index = self._parents[index]
            if index in set(path):  # a cycle
                self._parents[index] = -1
        for index, parent in enumerate(self._parents):
            (self._roots if parent < 0 else self._children[parent]).append(index)

    def _last_shown(self, current: str) -> int:
        """The message at which the displayed path ends: `current`, or the newest one after it."""
        index = next((place for place, node in enumerate(self._nodes) if node.id == current), -1)
        if index < 0 and self._roots:
            index = self._roots[-1]
        while index >= 0 and self._children[index]:
            index = self._children[index][-1]
        return index

    def _path_to(self, index: int) -> set[int]:
        path = set()
        while index >= 0:
            path.add(index)
            index = self._parents[index]
        return path

    def _flat(self, indices: Sequence[int]) -> list[int]:
        """`indices` with the children of messages without content in their place."""
        found, waiting = [], list(reversed(indices))
        while waiting:
            index = waiting.pop()
            if self._nodes[index].role == "none":
                waiting.extend(reversed(self._children[index]))
            else:
                found.append(index)
        return found

    # ---- turns

    def _options(self, starts: Sequence[int]) -> list[_Option]:
        """The versions of the turn that begins with one of `starts`."""
        found: list[_Option] = []
        waiting: list[tuple[int | None, int]] = [
            (index if self._nodes[index].role == "user" else None, index) for index in reversed(starts)
        ]
        while waiting:
            question, index = waiting.pop()
            following = self._flat(self._children[index])
            asked = [each for each in following if self._nodes[each].role == "user"]
            answers = [each for each in following if self._nodes[each].role == "answer"]
            if asked or not answers:
                found.append(_Option(question, index, asked))
            waiting.extend((question, each) for each in reversed(answers))
        if len(found) > MOST_VERSIONS:
            shown = found[self._shown_of(found)]
            kept = found[:MOST_VERSIONS]
            self.lost_versions += len(found) - MOST_VERSIONS
            found = kept if shown in kept else [*kept[1:], shown]
        return found

    def _shown_of(self, options: Sequence[_Option]) -> int:
        """The index of the displayed version, or the last one."""
        ends = [place for place, option in enumerate(options) if option.end in self._shown]
        for place in ends:
            following = options[place].following
            if not following or any(each in self._shown for each in following):
                return place
        return ends[-1] if ends else len(options) - 1

    def _version(self, chat_id: str, option: _Option) -> ArchivedVersion:
        chain, index = [], option.end
        while index >= 0 and self._nodes[index].role != "user":
            if self._nodes[index].role == "answer":
                chain.append(self._nodes[index])
            index = self._parents[index]
        self._repeated += len(chain)
        if self._repeated > 10 * _MOST_REPEATED:  # a chain in which each message has branches
            self.lost_versions += 1
            chain = chain[:1]
        chain.reverse()
        texts = [node.text for node in chain if node.text]
        thoughts = [node.thought for node in chain if node.thought]
        answer = "\n\n".join(texts)
        if thoughts:
            thought = "\n\n".join(thoughts)
            answer = f"<think>\n{thought}\n</think>\n\n{answer}"
        asked = self._nodes[option.question] if option.question is not None else None
        question = asked.text if asked else NO_QUESTION
        attachments = asked.attachments if asked else ()
        if not question and not attachments:
            question = NO_QUESTION
        time_s = asked.time_s if asked else next((node.time_s for node in chain if node.time_s), None)
        names = [text for each in attachments for text in (each.name, each.text)]
        name = _hashed(chat_id, self._name(option), question, answer, *names)
        return ArchivedVersion(name, question, answer, attachments, time_s)

    def _renamed(self, chat_id: str, turn: ArchivedTurn) -> ArchivedTurn:
        """A copied turn with a new id, because ids of turns are unique."""
        (version,) = turn.versions
        fields = {name: getattr(version, name) for name in version.__struct_fields__}
        return ArchivedTurn((ArchivedVersion(**fields | {"id": _hashed(chat_id, version.id)}),))

    def _name(self, option: _Option) -> str:
        question = self._nodes[option.question].id if option.question is not None else ""
        return f"{question}\0{self._nodes[option.end].id}"


def _hashed(*parts: str | None) -> str:
    """An id that is the same in each import of the same message."""
    text = "\0".join(f"{len(part or '')}:{part or ''}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""What is so in the window just now, as far as it decides which actions can be used. Pure; no Qt."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

When = Literal[
    "always", "busy", "answerable", "editable", "asked", "deleted", "document", "unended", "versions"
]


class MenuFacts(Struct, frozen=True):
    """`ready`: a question can be asked. `busy`: an answer is being given; `busy_here`: in the open chat.

    `asked`: the open chat has a question. `deleted`: a deleted chat can be taken back. `document`: the
    open chat has one. `unended`: the model could continue its last answer. `versions`: the last answer has
    several. `checked` are the ids of the actions that stand for something that is on.
    """

    ready: bool = False
    busy: bool = False
    busy_here: bool = False
    asked: bool = False
    deleted: bool = False
    document: bool = False
    unended: bool = False
    versions: bool = False
    checked: frozenset[str] = frozenset()


def holds(when: When, facts: MenuFacts) -> bool:
    """Whether an action of this condition can be used."""
    match when:
        case "always":
            return True
        case "busy":
            return facts.busy
        case "answerable":
            return facts.ready and facts.asked
        case "editable":
            return facts.asked and not facts.busy_here
        case "asked":
            return facts.asked
        case "deleted":
            return facts.deleted
        case "document":
            return facts.document
        case "unended":
            return facts.ready and facts.unended
        case "versions":
            return facts.versions

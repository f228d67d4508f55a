"""A title for a chat: the model gives one while nothing is asked."""

from __future__ import annotations

from core.events.request import Message
from core.events.wire import Wire


class SuggestTitle(Wire, frozen=True):
    """Give a chat that began with `messages`, a question and its answer, a title.

    It is done with an empty cache of its own, teaches nothing, and ends as soon as anything else is asked.
    """

    request: str
    messages: tuple[Message, ...]


class TitleSuggested(Wire, frozen=True):
    """Answer to `suggest_title`. `title` is empty if the model gave none that is fit for use.

    `interrupted`: something else was asked before it was done; it may be asked for again.
    """

    request: str
    title: str
    interrupted: bool = False


TitleCommand = SuggestTitle
TitleEvent = TitleSuggested

"""How many tokens of the model's context a chat holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from app.session.chats.conversation import Conversation
from core.events import Image, Message

# Placeholder of the unsent message, because chat templates need one. It is one token.
PROBE = Message("user", "x")


class Held(Struct, frozen=True):
    """The beginning of the next prompt, without the unsent message.

    `counted_tokens` were counted by the model when it answered: system prompt, template, messages and
    documents. The texts `uncounted` and `images` come after them. If no answer has counted, in a chat that is
    new or imported, `messages` are those of the next prompt, with `PROBE` at the end, to count it.
    """

    counted_tokens: int = 0
    uncounted: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    images: tuple[Image, ...] = ()


def held(chat: Conversation, last_tokens: int) -> Held:
    """The beginning of the next prompt of `chat`.

    `last_tokens` is the context used by the last turn if its answer is running or was cut off; 0 if unknown.
    """
    uncounted: list[str] = []
    images: list[Image] = []
    counted_tokens = 0
    for turn in reversed(chat.turns):
        answer = turn.answer
        is_partial = answer.status in ("waiting", "writing", "cut_off", "failed")
        if turn is chat.turns[-1] and is_partial and last_tokens:
            counted_tokens = last_tokens
            break
        if answer.finished is not None:
            counted_tokens = answer.finished.stats.context_used_tokens
        if answer.calls:
            # If the answer was counted, no generation has read the results that it ends with.
            unread = answer.last_generation if answer.ends_with_results else -1
            results = [each.message for each in answer.calls if not counted_tokens or each.after == unread]
            uncounted[:0] = _texts(results)
            images[:0] = _images(results)
        if counted_tokens:
            break
        texts = (*(each.text for each in turn.user.attachments), turn.user.content, answer.text)
        uncounted[:0] = [text for text in texts if text]
        images[:0] = turn.user.images
    messages = () if counted_tokens else chat.ask("", PROBE).messages_for_request()
    return Held(counted_tokens, tuple(uncounted), messages, tuple(images))


def _texts(results: Sequence[Message]) -> list[str]:
    found = [(*(each.text for each in result.attachments), result.content) for result in results]
    return [text for texts in found for text in texts if text]


def _images(results: Sequence[Message]) -> list[Image]:
    return [image for result in results for image in result.images]

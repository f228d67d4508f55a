"""What the composer says. Every text a person reads there is here."""

from __future__ import annotations

from collections.abc import Sequence

ASK_FIRST = "Ask anything, or drop a file"
ASK_QUEUED = "Your next message, sent after this answer"
MESSAGE = "Message"
ATTACH = "Attach documents"
ATTACH_FILE = "Attach file"
ATTACH_FOLDER = "Attach folder"
FROM_FILES = "File…"
FROM_FOLDER = "Folder…"
FROM_LIBRARY = "From Library…"
DROP_TO_ATTACH = "Drop to attach"
SEND = "Send message"
STOP = "Stop answering"
THINK_FIRST = "Think first"
THINK_FIRST_SAYS = "Whether the model thinks before it answers, in this chat"
NO_IMAGES = "Pictures cannot be attached."
NO_IMAGES_HINT = "Paste the words that it shows."
PASTED_TEXT = "Pasted text"
QUOTED_TEXT = "Quoted text"


def reading_first(name: str) -> str:
    return f"“{name}” is still being read."


def numbered(name: str, number: int) -> str:
    return f"{name} {number}"


BEGINNING = " (beginning)"
WAY_NEW_CHAT = "Continue in New Chat"


def beginning_of(name: str) -> str:
    return name if name.endswith(BEGINNING) else name + BEGINNING


def short(name: str) -> str:
    """For a label that has little room."""
    return name if len(name) <= 24 else f"{name[:14]}…{name[-9:]}"


def over_limit(over_tokens: int, limit_tokens: int) -> str:
    over = "1 token" if over_tokens == 1 else f"{over_tokens:,} tokens"
    return f"This is {over} more than fit: the model takes {limit_tokens:,}."


def way_shorten(name: str, tokens: int) -> str:
    # Cut by characters, so that what is kept is not known to the token before it is counted.
    about = tokens if tokens < 1_000 else tokens // 100 * 100
    return f"Keep about the first {about:,} tokens of {short(name)}"


def way_remove(name: str, tokens: int) -> str:
    return f"Remove {short(name)} ({tokens:,} tokens)"


def context_pill(used_tokens: int, limit_tokens: int) -> str:
    return f"{used_tokens:,} of {limit_tokens:,}"


def context_spoken(used_tokens: int, limit_tokens: int, skipped_tokens: int = 0) -> str:
    said = f"Context: {used_tokens:,} of {limit_tokens:,} tokens used"
    return f"{said}, {skipped_tokens:,} of them skipped when reading" if skipped_tokens else said


CANCEL = "Cancel"
REMOVE = "Remove"


SEND_NOW = "Send Now"


def queued(texts: Sequence[str]) -> str:
    """What waits for the answer under way to end."""
    return f"Next: {texts[0]}{_more(texts)}"


def held(texts: Sequence[str]) -> str:
    """What waits for a person to send it."""
    return f"Not sent, the last answer broke off: {texts[0]}{_more(texts)}"


def _more(texts: Sequence[str]) -> str:
    return f" (and {len(texts) - 1:,} more)" if len(texts) > 1 else ""

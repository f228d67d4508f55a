"""Words that several rooms of the window share."""

from __future__ import annotations

NOT_SERVED = "Nothing can be asked of the model just now."
APP_NAME = "Draftlight"


def tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"

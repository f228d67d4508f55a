"""Texts shared by several parts of the window."""

from __future__ import annotations

NOT_SERVED = "The model cannot answer requests at the moment."
APP_NAME = "Draftlight"


def tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"

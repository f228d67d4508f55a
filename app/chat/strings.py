"""Every text of this folder that a person reads."""

from __future__ import annotations

import sys

RESTART_WORKER = "Restart Worker"
START_ANEW = "Restart"
TRY_AGAIN = "Try Again"
DOWNLOAD_MODEL = "Download and Load"
RESTORE_CHATS = "Restore from Backup"
REPAIR_CHATS = "Move to New Database"
OPEN_TABLES = "Open Tables"
DETAILS = "Details"
HIDE_DETAILS = "Hide Details"
CLOSE_BANNER = "Dismiss"
CLOSE_NOTICE = "Dismiss"
NEXT_TROUBLE = "Next"
DOWNLOAD = "Download"
NOT_NOW = "Not Now"
_MACHINE = "Mac" if sys.platform == "darwin" else "computer"
LOG_NAME = "Last lines of the worker’s log"


def smaller_context(tokens: int) -> str:
    return f"Smaller context: {tokens:,} tokens"


def offer(model: str, size_bytes: int) -> str:
    size = f"{size_bytes / 2**30:.1f} GB"
    return f"This starter is tiny. {model} ({size}) answers far better and fits this {_MACHINE}."


def trouble_count(number: int, count: int) -> str:
    return f"{number} of {count}"

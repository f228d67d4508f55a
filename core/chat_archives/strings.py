"""Texts about exports of other programs that a person reads."""

from __future__ import annotations

NO_CHATS_HINT = (
    "Choose an export of ChatGPT or Claude, chats that were exported from Open WebUI or Draftlight, or chat"
    " files of LM Studio."
)
DAMAGED_HINT = "Export or download it again."
IN_PARTS = "Import its files one after the other."
UNPACKS_HINT = "Export or download it again; real chats are compressed less."
LOCKED_HINT = "Unpack it, then import the JSON files in it."
NEWER_HINT = "Update Draftlight first."
NOT_STARTED = "the reader could not be started: {why}"
ENDED = "the reader ended with status {status}"


def no_chats(name: str) -> str:
    return f"{name} has no chats that Draftlight can read."


def damaged(name: str) -> str:
    return f"{name} is damaged or incomplete."


def newer(name: str) -> str:
    return f"{name} was written by a newer Draftlight."


def locked(name: str) -> str:
    return f"{name} is encrypted with a password."


def not_a_file(name: str) -> str:
    return f"{name} is not a file."


def not_read(name: str, why: str) -> str:
    return f"{name} could not be read: {why}."


def too_large(name: str, size_bytes: int, most_bytes: int) -> str:
    return f"The chats in {name} take {_gib(size_bytes)}; at most {_gib(most_bytes)} can be imported."


def unpacks(name: str, size_bytes: int) -> str:
    return f"A file in {name} claims to unpack to {_gib(size_bytes)}."


def too_many_files(name: str, most: int) -> str:
    return f"{name} has more than {most:,} files."


def too_much(name: str, what: str) -> str:
    return f"Reading {name} needs more than {what}."


def stands_still(name: str, silence_s: float) -> str:
    return f"Reading {name} made no progress for {silence_s:.0f} seconds."


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.1f} GB"

"""UI strings of the About window."""

from __future__ import annotations

TITLE = "About Draftlight"
CLAIM = "Chat with models that run on this machine. Nothing you write leaves it."
LICENCES = "What Draftlight is made of"
NO_LICENCE = "licence not stated"
CLOSE = "Close"
LOOK_FOR_UPDATE = "Check for Updates"
LOOKING = "Checking…"
NO_ADDRESS = "Not in this build: it names no page to ask. Nothing is ever asked."
NEWEST = "You have the latest version."


def version(number: str) -> str:
    return f"Version {number}, Apache-2.0"


def package(name: str, number: str, licence: str) -> str:
    return f"{name} {number}: {licence or NO_LICENCE}"


def newer(number: str, address: str) -> str:
    return f"Version {number} is available: {address}"


def not_found_out(reason: str) -> str:
    return f"The check failed: {reason}"


def get_version(number: str) -> str:
    return f"Get version {number}…"

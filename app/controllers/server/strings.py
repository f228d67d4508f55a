"""Texts of the local server's states and errors."""

from __future__ import annotations

CHANGED = "Another model is being loaded in Draftlight."
CHANGED_HINT = "Ask again in a moment."
BROKEN = "The local server stopped unexpectedly."
BROKEN_HINT = "Turn it off and on again in the window “Local Server”, under Settings."
COPIED_KEY = "The key was copied."


def no_address(given: str) -> str:
    return f"“{given}” is not a valid address to listen on."


NO_ADDRESS_HINT = "Give 127.0.0.1, localhost, or an address of this machine in figures."


def bad_name(given: str) -> str:
    return f"“{given}” is not a valid host name."


BAD_NAME_HINT = "A name is like mac.local, without http:// and without a port."


def bad_origin(given: str) -> str:
    return f"“{given}” is not the origin of a web page."


BAD_ORIGIN_HINT = "An origin is like http://localhost:3000, without a path."


OFF = "Nothing listens."
STARTING = "Starting…"
NEW_KEY_MADE = "There is a new key. Clients that send the old one are refused."


def serving(address: str) -> str:
    return f"Serving at {address}."

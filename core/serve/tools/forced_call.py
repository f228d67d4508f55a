"""ForcedCall: an answer that a grammar made one call, with its arguments as they are written. Pure."""

from __future__ import annotations

import re

from core.answer_format import CallArguments, CallBegun, Delta, Text

# See `core.serve.tools.choice`.
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]*)"\s*,\s*"arguments"\s*:\s*')


class ForcedCall:
    """Parses such an answer; has the methods of an `AnswerParser`."""

    in_thought = False

    def __init__(self) -> None:
        self.calls = 0
        self._held = ""
        self._began = False

    def add(self, text: str) -> list[Delta]:
        """Add text; returns what is now certain."""
        found: list[Delta] = []
        self._held += text
        if not self.calls:
            head = _HEAD.match(self._held)
            if head is None:
                return []
            self.calls, self._held = 1, self._held[head.end() :]
            found.append(CallBegun(0, head["name"]))
        if not self._began:
            self._held = self._held.lstrip()
            self._began = bool(self._held)
        # The last brace closes the call, not its arguments.
        stripped = self._held.rstrip()
        cut = len(stripped) - 1 if stripped.endswith("}") else len(stripped)
        arguments, self._held = self._held[:cut], self._held[cut:]
        if arguments:
            found.append(CallArguments(0, arguments))
        return found

    def end(self) -> list[Delta]:
        """End the answer: the call's closing brace is left, or text that became no call."""
        return [Text(self._held)] if not self.calls and self._held else []

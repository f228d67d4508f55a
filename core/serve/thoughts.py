"""Thoughts: what a model thinks aloud before it answers, told apart from the answer. Pure.

A thought is between a model's own tags at the very beginning of what it writes. Where a chat template puts
the opening tag into the prompt, nothing tells that a thought is written before its end comes: it stays text.
"""

from __future__ import annotations

TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
}


class Thoughts:
    """Of one answer. Fed with its text as it comes; gives (more of the thought, more of the answer)."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._begun = self._over = False
        # White space that belongs to a tag may come after it.
        self._at_tag = False
        self.is_open = False

    def add(self, text: str) -> tuple[str, str]:
        """More text. What may be a tag is held back until that is certain."""
        if self._over and not self._held and not self._at_tag:
            return "", text
        self._held += text
        if not self._begun:
            self._look_for_opening()
        thought = self._thought() if self.is_open else ""
        return thought, self._rest() if self._over else ""

    def end(self) -> tuple[str, str]:
        """There is no more: what was held back."""
        held, self._held = self._held, ""
        return (held, "") if self.is_open else ("", held)

    def _look_for_opening(self) -> None:
        stripped = self._held.lstrip()
        tag = next((tag for tag in TAGS if stripped.startswith(tag)), None)
        if tag is not None:
            self._begun = self.is_open = self._at_tag = True
            self._closing = TAGS[tag]
            self._held = stripped[len(tag) :]
        elif stripped and not any(tag.startswith(stripped) for tag in TAGS):
            self._begun = self._over = True

    def _thought(self) -> str:
        if self._at_tag:
            self._held = self._held.lstrip("\n")
            self._at_tag = not self._held
        at = self._held.find(self._closing)
        if at >= 0:
            thought, self._held = self._held[:at], self._held[at + len(self._closing) :]
            self.is_open, self._over, self._at_tag = False, True, True
            return thought.rstrip("\n")
        keep = next(
            (n for n in range(len(self._closing) - 1, 0, -1) if self._held.endswith(self._closing[:n])), 0
        )
        # The line's end before the closing tag is the tag's.
        cut = len(self._held[: len(self._held) - keep].rstrip("\n"))
        thought, self._held = self._held[:cut], self._held[cut:]
        return thought

    def _rest(self) -> str:
        if self._at_tag:
            self._held = self._held.lstrip()
            self._at_tag = not self._held
        rest, self._held = self._held, ""
        return rest

"""Trial: one prompt read by one reader, and how near that was to reading all of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# Text that goes on, a passage of a document that is asked for, a task's question.
Part = Literal["document", "passage", "task"]


class Trial(Struct, frozen=True):
    """`nll` is of the right answer or the text that follows, in nats a token; `kl_nats` and
    `top1_agreement` are against the dense reading, None where that was not at hand to compare with.
    `passed` is None where nothing was asked.
    """

    part: Part
    name: str
    seed: int
    reader: str
    prompt_tokens: int
    read_tokens: int
    nll: float
    kl_nats: float | None
    top1_agreement: float | None
    passed: bool | None = None
    found: int = 0
    answer: str = ""

    @property
    def key(self) -> tuple[Part, str, int, str]:
        return self.part, self.name, self.seed, self.reader

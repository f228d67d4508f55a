"""Trials: one prompt read by one reader, each written down at once so that a stopped run can go on.

The file's first line says under which conditions its trials were made; a file made under others
is refused, never mixed.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from core.errors import RequestError


class Trial(Struct, frozen=True):
    """`nll` is of the right answer or the text that follows, in nats a token; `kl_nats` and
    `top1_agreement` are against the dense reading. `passed` is None where nothing was asked.
    """

    part: str
    name: str
    seed: int
    reader: str
    prompt_tokens: int
    read_tokens: int
    nll: float
    kl_nats: float
    top1_agreement: float
    passed: bool | None = None
    found: int = 0
    answer: str = ""

    @property
    def key(self) -> tuple[str, str, int, str]:
        return self.part, self.name, self.seed, self.reader


class _Header(Struct, frozen=True):
    conditions: str


class Trials:
    """Those of one file. Raises `RequestError` for a file that is not of these conditions."""

    def __init__(self, path: Path, conditions: str) -> None:
        self._path = path
        self._held: dict[tuple[str, str, int, str], Trial] = {}
        if path.exists():
            self._load(conditions)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(_Header(conditions))

    @property
    def all(self) -> tuple[Trial, ...]:
        """In the order of writing."""
        return tuple(self._held.values())

    def has(self, part: str, name: str, seed: int, reader: str) -> bool:
        """Whether this trial was made already."""
        return (part, name, seed, reader) in self._held

    def add(self, trial: Trial) -> None:
        """Keep it, and write it down now."""
        self._held[trial.key] = trial
        self._write(trial)

    def _write(self, record: Struct) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def _load(self, conditions: str) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # it may have been stopped in the middle of a line
        first, *lines = whole.splitlines() or [b""]
        try:
            header = msgspec.json.decode(first, type=_Header)
            trials = [msgspec.json.decode(line, type=Trial) for line in lines]
        except msgspec.DecodeError as error:
            raise RequestError(
                f"{self._path} is not a file of trials: {error}.", "Choose another --out."
            ) from None
        if header.conditions != conditions:
            raise RequestError(
                f"{self._path} holds trials of other conditions ({header.conditions}).",
                "Choose another --out, or the same options as before.",
            )
        self._held = {trial.key: trial for trial in trials}
        if whole != content:
            self._path.write_bytes(whole)

"""Answers as families of models write them, from families.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct


class Family(Struct, frozen=True):
    """`template` has the marks of a chat template, `tail` is the end of a rendered prompt."""

    name: str
    template: str
    tail: str
    answer: str
    thought: str = ""
    text: str = ""
    calls: tuple[tuple[str, dict[str, object]], ...] = ()
    tokens: tuple[str, ...] = ()


_read = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
THINKING = msgspec.convert(_read["thinking"], tuple[Family, ...])
CALLING = msgspec.convert(_read["calling"], tuple[Family, ...])

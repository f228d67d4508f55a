"""Model families by what they demand: config keys, stop tokens, tokenizer, chat template (families.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tests.zoo.tokenizers import Added, TokenizerKind

TEMPLATES = Path(__file__).parent / "templates"


class Family(Struct, frozen=True):
    """One family. `model_type` is mlx-lm's, or one of its aliases; `base` is the type an alias is built as.

    `special`, `added` and `rstrip`: tokens beside the learned ones, separated by spaces; those in `added` are
    ordinary text to a decoder that skips special tokens, those in `rstrip` swallow the spaces behind them.
    `config_stops`, `text_stops`, `generation_stops`: what `eos_token_id` names in config.json, in its
    `text_config` and in generation_config.json. `config`: other keys; None leaves one out. `more_rows`:
    embedding rows minus ids of the tokenizer. `answer` is what the model writes, thought included, where the
    template leaves thoughts out of a conversation; empty: the template shows it.
    """

    name: str
    model_type: str
    template: str
    tokenizer: TokenizerKind
    special: str
    added: str = ""
    rstrip: str = ""
    bos: str = ""
    eos: str = ""
    adds_bos: bool = False
    config_stops: str = ""
    text_stops: str = ""
    generation_stops: str = ""
    base: str = ""
    config: Mapping[str, Any] = {}
    more_rows: int = 0
    answer: str = ""
    demands: str = ""
    source: str = ""

    @property
    def tokens(self) -> tuple[Added, ...]:
        """All added tokens, in the order of their ids."""
        swallowing = self.rstrip.split()
        special = [Added(text, True, text in swallowing) for text in self.special.split()]
        return (*special, *(Added(text, False, text in swallowing) for text in self.added.split()))

    @property
    def template_text(self) -> str:
        """The chat template."""
        return self.source or (TEMPLATES / f"{self.template}.jinja").read_text()


def _family(fields: dict[str, Any]) -> Family:
    config = {**fields.pop("config", {}), **dict.fromkeys(fields.pop("without", ()))}
    return msgspec.convert({**fields, "config": config}, Family)


_read = tomllib.loads(Path(__file__).with_name("families.toml").read_text("utf-8"))
FAMILIES: tuple[Family, ...] = tuple(map(_family, _read["family"]))


def family(name: str) -> Family:
    """The family of that name."""
    return next(each for each in FAMILIES if each.name == name)

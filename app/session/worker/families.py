"""Families: what people call a tokenizer family, from the name that a model's folder gave it. Pure."""

from __future__ import annotations

import re

# From here on a name says which member of the family it is: its size, how it was trained or stored.
_MEMBER = re.compile(
    r"[-_ ](?:\d+(?:\.\d+)?[bmk]\b|a?\d+x\d|instruct|chat|base|it\b|\d+-?bit|mlx|bf16|fp16).*", re.I
)


def recognised(family_name: str) -> str:
    """What people call a family: `SmolLM2-135M-Instruct` is SmolLM2."""
    return _MEMBER.sub("", family_name).strip("-_ ") or family_name

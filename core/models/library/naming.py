"""Naming: what people call a model and a tokenizer family, from the names that folders have.

Hub names (`owner/name`) become folder names (`owner--name`) and back, as in the hub's own cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_HUB_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
# How weights are stored, which the figures beside a name say anyway.
_STORED = re.compile(r"(mlx|\d+bit|[qf]\d+\w*|bf16|fp\d+|int\d+|mxfp\d+|nvfp\d+|dwq\d*)", re.IGNORECASE)
# What tells the members of a family apart: size, version by month, what it was trained for.
_MEMBER = re.compile(r"(a?\d+(\.\d+)?[bm]|\d{4}|e\d+b|instruct|chat|base|it|thinking)", re.IGNORECASE)


def is_hub_name(text: str) -> bool:
    """Whether it has the form owner/name."""
    return _HUB_NAME.fullmatch(text) is not None and ".." not in text and "--" not in text


def folder_name(hub_name: str) -> str:
    """`owner/name` → `owner--name`."""
    return hub_name.replace("/", "--")


def hub_name(folder_name: str) -> str:
    """`owner--name` → `owner/name`; empty for other names."""
    name = folder_name.replace("--", "/", 1)
    return name if is_hub_name(name) else ""


def base_name(folder: Path) -> str:
    """The model's name as its maker wrote it, without the owner; of a snapshot in the hub's cache, too."""
    name = folder.name
    if folder.parent.name == "snapshots":
        name = folder.parent.parent.name.removeprefix("models--")
    found = hub_name(name)
    return found.partition("/")[2] if found else name


def display_name(folder: Path, config: dict[str, Any]) -> str:
    """`Qwen3-14B-4bit` → “Qwen3 14B”; a config may say it itself."""
    if config.get("draftlight_name"):
        return str(config["draftlight_name"])
    return readable(base_name(folder))


def readable(name: str) -> str:
    """Words instead of hyphens, without how the weights are stored at the end."""
    words = [word for word in name.split("-") if word]
    while len(words) > 1 and _STORED.fullmatch(words[-1]):
        words.pop()
    return " ".join(words) or name


def family_label(names: Iterable[str]) -> str:
    """What to call a tokenizer family whose members have these display names: the shortest kin name."""
    labels = []
    for name in names:
        words = [word for word in name.split() if not _MEMBER.fullmatch(word)]
        labels.append(" ".join(words) or name)
    return min(labels, key=lambda label: (len(label), label), default="")

"""`draftlight settings`: every setting that `--set` takes, what it allows, and its default."""

from __future__ import annotations

import argparse

from core.settings import declared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes nothing."""
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print them."""
    for setting in declared():
        print(f"{setting.key}  ({setting.allowed}; default {_shown(setting.default)})")
        print(f"    {setting.title}: {setting.help}")
    return 0


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default) or "empty"

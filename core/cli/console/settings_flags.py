"""The flags for settings: the common ones by name, all others by `--set`."""

from __future__ import annotations

import argparse

from core.cli.console.config import read_config
from core.cli.console.parser import UsageError
from core.settings import FROM_MODEL, Settings, declared, parse_all

# Settings common enough to have a flag of their own; all others are reached by --set.
_FLAGS = {
    "--drafter": "drafting.drafter",
    "--max-tokens": "sampling.max_tokens",
    "--temperature": "sampling.temperature",
    "--seed": "sampling.seed",
    "--specprefill": "prefill.mode",
    "--keep-pct": "prefill.keep_pct",
    "--scorer": "prefill.scorer",
}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """A flag for each common setting, and `--set`."""
    known = {setting.key: setting for setting in declared()}
    for flag, key in _FLAGS.items():
        setting = known[key]
        default = f"the model's own, else {setting.default}" if key in FROM_MODEL else setting.default
        told = f"{setting.title.lower()}: {setting.allowed} (default {default})"
        parser.add_argument(
            flag, dest=key, metavar="NAME" if setting.choices else "N", help=told.replace("%", "%%")
        )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="GROUP.FIELD=VALUE",
        help="any setting; `draftlight settings` lists them with what they allow: " + ", ".join(known),
    )


def settings_from(options: argparse.Namespace, base: Settings | None = None) -> Settings:
    """The settings that the flags and the file of defaults ask for, `base` for all others.

    Raises `SettingError`, `UsageError`.
    """
    pairs = [setting_pair(text) for text in options.set]
    pairs += [(key, value) for key in _FLAGS.values() if (value := vars(options)[key]) is not None]
    return parse_all(read_config(base).settings, pairs)


def setting_pair(text: str) -> tuple[str, str]:
    """Key and value of `group.field=value`. Raises `UsageError`."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text} has no value.", "Write --set group.field=value.")
    return key, value

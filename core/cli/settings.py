"""`draftlight settings`: all settings with their allowed values and defaults.

`docs/settings.md` is the output of `--markdown`.
"""

from __future__ import annotations

import argparse

from core.settings import declared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--markdown`."""
    parser.add_argument("--markdown", action="store_true", help="print docs/settings.md")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print all settings."""
    if options.markdown:
        print(document(), end="")
        return 0
    for setting in declared():
        print(f"{setting.key}  ({setting.allowed}; default {_shown(setting.default)})")
        print(f"    {setting.title}: {setting.help}")
    return 0


def document() -> str:
    """All settings as Markdown, one table per group."""
    lines = [
        "# Settings",
        "",
        "Made by `make settings-doc` from the declarations in `core/settings`: what `--set` takes, what",
        "stands beside a chat, and what a group in `config.toml` may hold.",
    ]
    group = ""
    for setting in declared():
        if (name := setting.key.partition(".")[0]) != group:
            group = name
            lines += ["", f"## {group}", "", "| key | allowed | default | |", "|---|---|---|---|"]
        about = f"**{setting.title}.** {setting.help}".replace("|", "\\|")
        allowed = str(setting.allowed).replace("|", "\\|")
        lines.append(f"| `{setting.key}` | {allowed} | {_shown(setting.default)} | {about} |")
    return "\n".join(lines) + "\n"


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default) or "empty"

"""Programs of servers: how they are found, their environment, and hints for installing missing
ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from core.tools.messages import ServerEntry, ToolsError

# Variables that servers inherit from this process: no keys of other programs, no PYTHONPATH.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER")
# An app that Finder starts has none of these in its PATH.
_FOLDERS = (
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "~/.local/bin",
    "~/.cargo/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.volta/bin",
    "~/.asdf/shims",
    "~/.local/share/mise/shims",
)
_NODE = "Install Node.js from nodejs.org, or with Homebrew: brew install node"
_UV = "Install uv from docs.astral.sh/uv, or with Homebrew: brew install uv"
_SOURCES = {
    "npx": _NODE,
    "npm": _NODE,
    "node": _NODE,
    "uvx": _UV,
    "uv": _UV,
    "bun": "Install Bun from bun.sh.",
    "bunx": "Install Bun from bun.sh.",
    "deno": "Install Deno from deno.com.",
    "docker": "Install Docker Desktop from docker.com.",
    "python": "Enter “python3”, or the whole path of a Python.",
    "python3": "Install Python from python.org, or with Homebrew: brew install python",
}


def server_environment(entry: ServerEntry, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of a server: a short list of inherited names, a search path, and the entry's."""
    inherited = {name: environment[name] for name in _INHERITED if name in environment}
    return inherited | {"PATH": _search_path(environment)} | dict(entry.env)


def find_program(entry: ServerEntry, environment: Mapping[str, str]) -> str:
    """The path of the entry's program, searched in the server's `environment`. Raises `ToolsError`."""
    command = os.path.expanduser(entry.command)
    if os.sep in command and not os.path.isabs(command):
        raise ToolsError(f"“{entry.command}” is a relative path.", "Enter the whole path of the program.")
    found = shutil.which(command, path=environment.get("PATH", os.defpath))
    if found:
        return found
    if os.path.isfile(command):
        raise ToolsError(f"“{entry.command}” is not executable.", "Enter the program that runs it.")
    source = _SOURCES.get(os.path.basename(command), "Install it, or enter the whole path of the program.")
    raise ToolsError(f"The program “{entry.command}” was not found.", source)


def _search_path(environment: Mapping[str, str]) -> str:
    folders = [
        folder for folder in environment.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)
    ]
    more = [os.path.expanduser(folder) for folder in _FOLDERS]
    # nvm has a folder for each version; the newest is the last in the order of its numbers.
    versions = Path(os.path.expanduser("~/.nvm/versions/node"))
    more += [str(each / "bin") for each in sorted(_listed(versions), key=_numbers, reverse=True)[:1]]
    folders += [folder for folder in more if folder not in folders and os.path.isdir(folder)]
    return os.pathsep.join(folders)


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _numbers(folder: Path) -> list[int]:
    return [int(part) for part in folder.name.lstrip("v").split(".") if part.isdecimal()]

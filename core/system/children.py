"""How a process of this app starts another one: its command, its environment, its folder.

A child runs Draftlight's files and nothing that lies where the app was started: the current folder is
not on its search path and is not its own current folder. So a relative path has to be made absolute
before it is given to a child; `absolute_path` does that, `absolute_reference` for what may be a name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Where children run: it is always there, and no volume is kept from being ejected.
CHILD_FOLDER = os.path.abspath(os.sep)
# What may hold a path and is read by us or by the hub's client.
_PATHS = ("DRAFTLIGHT_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TMPDIR")


def child_command(*words: str) -> list[str]:
    """How to start `draftlight WORDS`: this interpreter from source, the app's executable when bundled."""
    if getattr(sys, "frozen", False):
        return [sys.executable, *words]
    return module_command("core.cli", *words)


def module_command(module: str, *words: str) -> list[str]:
    """How to start a module of ours that has no word on the command line; not in the bundle."""
    return [sys.executable, "-P", str(Path(__file__).with_name("start_child.py").absolute()), module, *words]


def child_environment(**more: str) -> dict[str, str]:
    """This process's environment for a child that has another current folder, and `more`.

    An empty entry of PYTHONPATH means the current folder, mostly by accident (`$PYTHONPATH:…`), and is
    left out. Python processes that libraries start are kept from the current folder, too.
    """
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    if searched := environment.pop("PYTHONPATH", ""):
        entries = [os.path.abspath(entry) for entry in searched.split(os.pathsep) if entry]
        if entries:
            environment["PYTHONPATH"] = os.pathsep.join(entries)
    for name in _PATHS:
        if value := environment.get(name):
            environment[name] = os.path.abspath(os.path.expanduser(value))
    return environment | more


# What `core.models` knows by name; it stands above this room.
_NAMES = ("starter",)


def absolute_reference(reference: str, folder: Path = Path()) -> str:
    """A model's reference that means the same in any folder: a path that is there is made absolute.

    It is relative to `folder`, which is the current one if that is not given. The starter's name stays,
    whatever lies in that folder.
    """
    if reference in _NAMES:
        return reference
    try:
        path = folder / Path(reference).expanduser()
        return str(path.absolute()) if reference and path.exists() else reference
    except (OSError, ValueError, RuntimeError):  # no path at all: whoever looks it up says so
        return reference


def absolute_path(text: str, folder: Path = Path()) -> str:
    """The same for what can only be a path, whether or not it is there; empty stays empty."""
    try:
        return str((folder / Path(text).expanduser()).absolute()) if text else text
    except (OSError, RuntimeError):  # nobody's home folder, or no current one: whoever opens it says so
        return text

"""Command, environment and working folder of child processes.

A child imports Draftlight's files only: the parent's current folder is neither on its search path nor its
working folder. Relative paths must therefore be made absolute before they are passed to a child, with
`absolute_path`, or with `absolute_reference` for a value that may be a model name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Working folder of children: it always exists, and keeps no volume from being ejected.
CHILD_FOLDER = os.path.abspath(os.sep)
# Variables with paths in which huggingface_hub expands `~` and variables, even empty ones.
_HUB = {"XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN_PATH"}


def child_command(*words: str) -> list[str]:
    """Command line of `draftlight WORDS`: with this interpreter from source, the executable when bundled."""
    if getattr(sys, "frozen", False):
        return [sys.executable, *words]
    return module_command("core.cli", *words)


def module_command(module: str, *words: str) -> list[str]:
    """Command line of a module without a subcommand. Only from source."""
    return [sys.executable, "-P", str(Path(__file__).with_name("start_child.py").absolute()), module, *words]


def child_environment(**more: str) -> dict[str, str]:
    """This process's environment for a child in another working folder, with `more` added.

    Empty entries of PYTHONPATH mean the current folder, mostly by accident (`$PYTHONPATH:…`), and are
    removed. PYTHONSAFEPATH extends the isolation to Python processes that libraries start.
    """
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    if searched := environment.pop("PYTHONPATH", ""):
        entries = [os.path.abspath(entry) for entry in searched.split(os.pathsep) if entry]
        if entries:
            environment["PYTHONPATH"] = os.pathsep.join(entries)
    # Expanded as by its reader: in Draftlight's folder `~` only, in Python's for temporary files nothing.
    if home := environment.get("DRAFTLIGHT_HOME"):
        environment["DRAFTLIGHT_HOME"] = os.path.abspath(os.path.expanduser(home))
    if folder := environment.get("TMPDIR"):
        environment["TMPDIR"] = os.path.abspath(folder)
    for name in environment.keys() & _HUB:
        environment[name] = os.path.abspath(os.path.expandvars(os.path.expanduser(environment[name])))
    return environment | more


def absolute_reference(reference: str, folder: Path = Path()) -> str:
    """A model reference that is valid in any folder: an existing path, relative to `folder`, made absolute.

    `starter` is returned unchanged, even if `folder` has a file of that name.
    """
    if reference == "starter":  # a name of `core.folders`, which this package may not import
        return reference
    try:
        path = folder / Path(reference).expanduser()
        return str(path.absolute()) if reference and path.exists() else reference
    except (OSError, ValueError, RuntimeError):  # not a path; the lookup reports it
        return reference


def absolute_path(text: str, folder: Path = Path()) -> str:
    """`text` as an absolute path, whether or not it exists. Empty stays empty."""
    try:
        return str((folder / Path(text).expanduser()).absolute()) if text else text
    except (OSError, RuntimeError):  # unknown home or current folder; opening the path reports it
        return text

"""The first file of every child process from source: `python -P start_child.py MODULE WORD…`.

Run by its path, so that neither the current folder nor the folder of this file is on `sys.path`. The
modules are those of the checkout or installation that this file is part of, whatever else is installed:
parent and child are always of one version. Its folder comes behind the standard library, whose names it
must not take.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the module that the first argument names, as `python -m` does."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    library = os.path.dirname(os.__file__)
    standard = (library, os.path.join(library, "lib-dynload"))
    behind = 1 + max((place for place, entry in enumerate(sys.path) if entry in standard), default=-1)
    if root not in sys.path[: behind + 1]:
        sys.path.insert(behind, root)
    del sys.argv[0]
    import runpy

    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

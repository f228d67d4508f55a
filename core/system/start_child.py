"""Entry script of child processes from source: `python -P start_child.py MODULE WORD…`.

Runs by path, so that neither the current folder nor this file's folder is on `sys.path`. The child imports
the checkout or installation that contains this file, so parent and child have the same version. Its folder
follows the standard library on the path, so that it cannot shadow standard modules.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the module named by the first argument, like `python -m`."""
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

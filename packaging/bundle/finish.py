"""What is added to a tree after the packager made it and before it is signed: licences and bytecode.

The packager removes bytecode, which names the place it was compiled in, and its launcher writes
none, so every start would compile a thousand modules. Here they are compiled ahead, by hash
instead of by time, under the name they have inside the bundle.
"""

from __future__ import annotations

import compileall
import shutil
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

from bundle.notice import write_notice
from bundle.project import PYTHON, ROOT


def finish(resources: Path) -> None:
    """`resources` holds `app` and `app_packages`. Raises `WrongPythonError` under another Python."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != PYTHON:
        raise WrongPythonError(
            f"The bundle carries Python {PYTHON} and this is {running}. Make it with that one:"
            f" make clean && make PYTHON=python{PYTHON} app"
        )
    write_notice(resources)
    shutil.copyfile(ROOT / "LICENSE", resources / "LICENSE.txt")
    for folder in ("app", "app_packages"):
        # Templates and files for other Pythons fail to compile and are left as they are.
        compileall.compile_dir(
            resources / folder,
            maxlevels=40,
            quiet=2,
            stripdir=str(resources),
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            workers=0,
        )


class WrongPythonError(Exception):
    """Bytecode of this Python would not be read by the bundle's."""

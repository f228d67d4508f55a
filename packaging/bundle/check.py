"""`make app-check`: assemble the bundle's tree with the real macOS wheels, and verify it.

`python -m bundle.check` assembles and verifies, on Linux too; `python -m bundle.check APP`
verifies one that is there. `--runtime` also downloads CPython and the launcher, which come from
outside the package index. Exit status 1 if anything failed; what only a Mac brings is `absent`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bundle.checks import Bundle, Result, check_all
from bundle.finish import finish
from bundle.prepare import packager, packager_environment, prepare, say
from bundle.project import FORMAL_NAME, read_project
from bundle.wheels import MACOS

_MARKS = {"ok": "ok    ", "failed": "FAILED", "absent": "absent"}


def assemble(*, with_runtime: bool) -> Path:
    """The tree `Draftlight.app`, made anew. Raises CalledProcessError if a tool fails."""
    folder = prepare(read_project(), MACOS, "macos")
    shutil.rmtree(folder / "build", ignore_errors=True)
    interpreter = packager()
    say("Briefcase assembles the tree")
    with (folder / "briefcase.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(
            [str(interpreter), "-m", "bundle.assemble", *(["--runtime"] if with_runtime else [])],
            cwd=folder,
            env=packager_environment(dict(os.environ)),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        sys.stderr.write((folder / "briefcase.log").read_text("utf-8")[-4000:])
        raise subprocess.CalledProcessError(done.returncode, "bundle.assemble")
    app = folder / "build" / "draftlight" / "macos" / "app" / f"{FORMAL_NAME}.app"
    finish(app / "Contents" / "Resources")
    return app


def report(results: list[Result]) -> int:
    """Print them; 1 if one failed."""
    width = max(len(result.check) for result in results)
    for result in results:
        print(f"{_MARKS[result.state]}  {result.check:{width}}  {result.text}")
    failed = sum(result.state == "failed" for result in results)
    absent = sum(result.state == "absent" for result in results)
    print(
        f"\n{len(results) - failed - absent} ok, {failed} failed, {absent} absent (only a Mac brings them)."
    )
    return 1 if failed else 0


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="bundle.check", description="Assemble and verify the macOS bundle.")
    parser.add_argument("app", nargs="?", type=Path, help="a bundle that is there already")
    parser.add_argument("--runtime", action="store_true", help="download CPython and the launcher too")
    options = parser.parse_args()
    app = options.app or assemble(with_runtime=options.runtime)
    say(f"Checks of {app.name}")
    return report(check_all(Bundle(app.resolve()), read_project()))


if __name__ == "__main__":
    sys.exit(main())

"""`make app-check`: assemble the bundle's tree with the real macOS wheels, and verify it.

`python -m bundle.check` assembles and verifies, on Linux too; `python -m bundle.check APP`
verifies one that is there; with `--here`, a part of `make check`, what this machine has without a
build: the template's Info.plist and entitlements, or the tree of an earlier build. What was assembled
is also signed, in a copy, by a signer that needs no Mac, and that seal verified. `--runtime` also
downloads CPython and the launcher, which come from outside the package index. Exit status 1 if
anything failed; what only a Mac brings is `absent`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bundle.checks import Bundle, Result, check_all, check_template
from bundle.finish import finish
from bundle.prepare import WrongPythonError, packager, packager_environment, prepare, say
from bundle.project import BUILD, FORMAL_NAME, read_project
from bundle.supplies.wheels import MACOS

# Where Briefcase puts the tree, in the folder that it was prepared in.
APP = Path("build", "draftlight", "macos", "app", f"{FORMAL_NAME}.app")
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
    app = folder / APP
    finish(app / "Contents" / "Resources")
    return app


def sign_copy(app: Path) -> Path:
    """A signed copy of `app`, in a folder of its own. Raises CalledProcessError if it cannot be signed."""
    say("Signing a copy, ad hoc with the hardened runtime")
    copy = BUILD / "macos" / "signed" / app.name
    subprocess.run(
        [str(packager()), "-m", "bundle.signing.sign", str(app), str(copy)],
        env=packager_environment(dict(os.environ)),
        check=True,
    )
    return copy


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
    parser.add_argument("--here", action="store_true", help="what this machine has without a build")
    options = parser.parse_args()
    if options.here:
        app = BUILD / "macos" / APP
        results = check_all(Bundle(app), read_project()) if app.is_dir() else check_template(read_project())
        return report(results)
    if options.app:
        say(f"Checks of {options.app.name}")
        return report(check_all(Bundle(options.app.resolve()), read_project()))
    try:
        app = assemble(with_runtime=options.runtime)
    except WrongPythonError as error:
        print(error, file=sys.stderr)
        return 1
    copy = sign_copy(app)
    say(f"Checks of {app.name}")
    status = report(check_all(Bundle(app), read_project(), Bundle(copy)))
    shutil.rmtree(copy.parent)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""`make app-linux`: the packager's Linux output from the same configuration, started and asked.

Not a release format: it shows, on the machine where Draftlight is developed, what cannot be shown
of the macOS bundle there. A small executable embeds Python and runs the launcher module over
`app` and `app_packages`, as in the bundle. It is tried out from an empty folder, without the
checkout, on a display of its own, and must pass `--smoke` with its own executable as worker and
leave its own files as they were; then once more mounted read-only, by a user without rights.

Needs the system's Python of the bundle's version with headers, a C compiler, and Xvfb.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bundle.finish import finish
from bundle.prepare import WrongPythonError, packager, packager_environment, prepare, say
from bundle.project import PACKAGING, PYTHON, read_project
from bundle.supplies.wheels import LINUX
from bundle.trial import try_out

SYSTEM_PYTHON = f"/usr/bin/python{PYTHON}"
TEMPLATE = PACKAGING / "template-linux"
_SCREEN = ["/usr/bin/xvfb-run", "--auto-servernum", "--server-args=-screen 0 1600x1000x24"]
_NEEDED = {
    SYSTEM_PYTHON: f"python{PYTHON}",
    f"/usr/include/python{PYTHON}/Python.h": f"python{PYTHON}-dev",
    "/usr/bin/gcc": "gcc",
    "/usr/bin/xvfb-run": "xvfb",
}


def build() -> Path:
    """The installation tree (`usr/…`), made anew. Raises CalledProcessError if a tool fails."""
    folder = prepare(read_project(), LINUX, "linux", template=str(TEMPLATE))
    shutil.rmtree(folder / "build", ignore_errors=True)
    briefcase = [str(packager(SYSTEM_PYTHON)), "-m", "briefcase"]
    environment = packager_environment(dict(os.environ))
    for action in ("create", "build"):
        say(f"Briefcase: {action} linux system")
        with (folder / f"{action}.log").open("w", encoding="utf-8") as log:
            done = subprocess.run(
                [*briefcase, action, "linux", "system", "--no-input"],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if done.returncode:
            sys.stderr.write((folder / f"{action}.log").read_text("utf-8")[-4000:])
            raise subprocess.CalledProcessError(done.returncode, f"briefcase {action}")
    (tree,) = folder.glob("build/draftlight/*/*/draftlight-*/usr")
    finish(tree / "lib" / "draftlight")
    return tree


def smoke(tree: Path) -> int:
    """Try out the tree on a display of its own; then again as from an opened disk image. Exit status."""
    if status := try_out([str(tree / "bin" / "draftlight")], tree, screen=_SCREEN):
        return status
    say("Again from a place that nobody can write to, as a user without rights")
    with tempfile.TemporaryDirectory(prefix="draftlight-image-") as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "Draftlight image"
        place.mkdir()
        command = [str(place / "bin" / "draftlight")]
        return try_out(command, tree, screen=[*read_only(tree, place), *_SCREEN])


def read_only(tree: Path, place: Path) -> list[str]:
    """What to put before a command that shall find `tree` at `place`, mounted read-only, and have no rights.

    Root gives its rights up; anyone else mounts in a user namespace, where the system allows it.
    """
    as_root = os.geteuid() == 0
    space = ["unshare", "--mount"] if as_root else ["unshare", "--mount", "--map-root-user"]
    drop = "setpriv --reuid=65534 --regid=65534 --clear-groups" if as_root else ""
    script = f'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && shift 2 && exec {drop} "$@"'
    return [*space, "sh", "-c", script, "sh", str(tree), str(place)]


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="bundle.linux", description="Build and smoke the Linux output.")
    parser.add_argument("--smoke-only", type=Path, metavar="USR", help="a tree that is there already")
    options = parser.parse_args()
    if missing := [package for path, package in _NEEDED.items() if not Path(path).exists()]:
        print(f"Needed here: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    try:
        return smoke(options.smoke_only or build())
    except WrongPythonError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""`make app`: Draftlight.app and its dmg, on a Mac with Apple silicon.

Create, add licences and bytecode, sign ad hoc, verify, try out, package. Environment:

- `DRAFTLIGHT_IDENTITY`: a Developer ID Application identity (name or SHA-1). With it everything is
  signed again, inside out, with the hardened runtime and a timestamp; and tried out again, since the
  hardened runtime forbids what an ad-hoc signature allows.
- `DRAFTLIGHT_NOTARY_PROFILE`: a keychain profile of notarytool. With both, the dmg is notarised
  and stapled.
- `SOURCE_DATE_EPOCH`: the time in archives; by default fixed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bundle.check import APP, report
from bundle.checks import Bundle, check_all
from bundle.finish import finish
from bundle.prepare import WrongPythonError, packager, packager_environment, prepare, say
from bundle.project import FORMAL_NAME, ROOT, Project, read_project
from bundle.supplies.runtime import DownloadsError, pin, unpinned
from bundle.supplies.wheels import MACOS
from bundle.trial import try_out

DIST = ROOT / "dist"


def main() -> int:
    """Exit status."""
    if (sys.platform, platform.machine()) != ("darwin", "arm64"):
        print(
            "“make app” needs a Mac with Apple silicon. Here, “make app-check” verifies its tree.",
            file=sys.stderr,
        )
        return 1
    identity = os.environ.get("DRAFTLIGHT_IDENTITY", "")
    profile = os.environ.get("DRAFTLIGHT_NOTARY_PROFILE", "")
    if profile and not identity:
        print("Apple notarises only what is signed: set DRAFTLIGHT_IDENTITY too.", file=sys.stderr)
        return 1
    if identity and (missing := unpinned()):
        print(
            f"The template has no {' and no '.join(missing)}. Run “make app” without an identity, compare"
            " what it writes with the publisher's, and commit it.",
            file=sys.stderr,
        )
        return 1
    try:
        return build(read_project(), identity, profile)
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0] if isinstance(error.cmd, list) else error.cmd} failed.", file=sys.stderr)
    except (WrongPythonError, DownloadsError) as error:
        print(error, file=sys.stderr)
    return 1


def check_image(image: Path, project: Project) -> int:
    """Checks the app inside the disk image, which is what people get. 0, or 1 if something is wrong."""
    say("The disk image")
    run("hdiutil", "verify", "-quiet", str(image))
    with TemporaryDirectory() as folder:
        run("hdiutil", "attach", "-quiet", "-nobrowse", "-readonly", "-mountpoint", folder, str(image))
        try:
            app = Path(folder) / f"{FORMAL_NAME}.app"
            return report(check_all(Bundle(app), project)) or verify(app)
        finally:
            run("hdiutil", "detach", "-quiet", folder)


def build(project: Project, identity: str, profile: str) -> int:
    """Exit status. Raises CalledProcessError if a tool fails."""
    folder = prepare(project, MACOS, "macos")
    shutil.rmtree(folder / "build", ignore_errors=True)
    shutil.rmtree(folder / "dist", ignore_errors=True)
    briefcase(folder, "create", "macOS", "app")
    for line in pin():
        say(f"Not known before, now in the template; compare and commit it: {line}")
    app = folder / APP
    finish(app / "Contents" / "Resources")
    briefcase(folder, "build", "macOS", "app")
    say("Checks")
    status = report(check_all(Bundle(app), project)) or verify(app) or trial(app)
    if status:
        return status
    signing = ["--identity", identity] if identity else ["--adhoc-sign"]
    briefcase(folder, "package", "macOS", "app", "--packaging-format", "dmg", "--no-notarize", *signing)
    (image,) = (folder / "dist").glob("*.dmg")
    if identity:
        status = verify(app) or trial(app)
        if status:
            return status
    if status := check_image(image, project):
        return status
    if profile:
        run("xcrun", "notarytool", "submit", str(image), "--keychain-profile", profile, "--wait")
        run("xcrun", "stapler", "staple", str(image))
        run("spctl", "--assess", "--type", "open", "--context", "context:primary-signature", "-v", str(image))
    DIST.mkdir(exist_ok=True)
    out = DIST / f"{FORMAL_NAME}-{project.version}-arm64.dmg"
    shutil.copyfile(image, out)
    say(f"{out.relative_to(ROOT)}, {out.stat().st_size / 1e6:.0f} MB")
    return 0


def briefcase(folder: Path, *arguments: str) -> None:
    """One command of the packager. Raises CalledProcessError."""
    say(f"Briefcase: {arguments[0]}")
    subprocess.run(
        [str(packager()), "-m", "briefcase", *arguments, "--no-input"],
        cwd=folder,
        env=packager_environment(dict(os.environ)),
        check=True,
    )


def verify(app: Path) -> int:
    """Whether the system finds the signatures whole. 0, or codesign's status."""
    say("Signatures")
    return subprocess.run(["codesign", "--verify", "--deep", "--strict", "--verbose=1", str(app)]).returncode


def trial(app: Path) -> int:
    """Try out the bundle by its own executable; the worker is the same one with `--worker`."""
    return try_out([str(app / "Contents" / "MacOS" / FORMAL_NAME)], app)


def run(*command: str) -> None:
    """Raises CalledProcessError."""
    arguments: Sequence[str] = command
    say(" ".join(arguments[:3]))
    subprocess.run(list(arguments), check=True)


if __name__ == "__main__":
    sys.exit(main())

"""Signs a copy of a bundle without Apple's tools: ad hoc, inside out, the app with the hardened runtime.

Runs in the packager's environment: `python -m bundle.signing.sign APP COPY`. Not how releases are signed
(that is Briefcase with codesign, on a Mac): it shows, where there is no Mac, that everything in the
tree can be signed and that the seal over it holds, which `bundle.signing.seal` then looks at. Where the
launcher was not downloaded, a minimal executable stands in its place, for the seal is kept in it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import apple_platform
from apple_platform import macho

from bundle.project import FORMAL_NAME


def sign_copy(app: Path, copy: Path) -> None:
    """`copy` is made anew. Raises `apple_platform.ApplePlatformError`."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(app, copy, symlinks=True)
    launcher = copy / "Contents" / "MacOS" / FORMAL_NAME
    if not launcher.exists():
        launcher.parent.mkdir(exist_ok=True)
        launcher.write_bytes(macho.create_synthetic())
        launcher.chmod(0o755)
    apple_platform.sign(copy, code_signature_flags=["runtime"])


def main(arguments: list[str]) -> int:
    """Exit status."""
    app, copy = map(Path, arguments)
    try:
        sign_copy(app, copy)
    except apple_platform.ApplePlatformError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Briefcase's own `create macOS app`, on a machine that is not a Mac.

Runs in the packager's environment: `python -m bundle.assemble [--runtime]`, in the folder that
holds the packager's configuration. Everything that Briefcase does in Python is Briefcase's:
template, app code, pip for macOS wheels, icon, clean-up. What it asks a Mac for is answered here:

- thinning universal libraries, which is `lipo` on a Mac, by `macho.thin`;
- the CPython framework and the launcher come from addresses outside the package index. With
  `--runtime` they are downloaded as on a Mac; without it the tree has neither, and
  `bundle.check` says so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from briefcase.console import Console
from briefcase.exceptions import BriefcaseError, HelpText
from briefcase.platforms.macOS.app import macOSAppCreateCommand

from bundle.project import ARCHITECTURE, MINIMUM_MACOS
from bundle.signing.macho import thin


class CreateElsewhere(macOSAppCreateCommand):  # type: ignore[misc]
    """`with_runtime` decides about the two downloads."""

    supported_host_os = frozenset({"Darwin", "Linux"})
    with_runtime = False

    def is_icloud_synced(self, path: Path) -> bool:
        """There is no iCloud here."""
        return False

    def ensure_thin_binary(self, path: Path, arch: str) -> None:
        """What `lipo -thin` does."""
        path.write_bytes(thin(path.read_bytes(), arch))

    def install_app_support_package(self, app: Any) -> None:
        """CPython, or only the fact that Briefcase wants to know of it: the oldest macOS it runs on."""
        if self.with_runtime:
            super().install_app_support_package(app)
            return
        folder = self.support_path(app)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "VERSIONS").write_text(f"Min macOS version: {MINIMUM_MACOS}\n", encoding="utf-8")

    def install_stub_binary(self, app: Any) -> None:
        """The launcher."""
        if self.with_runtime:
            super().install_stub_binary(app)


def main(arguments: list[str]) -> int:
    """Exit status."""
    console = Console()
    command = CreateElsewhere(console=console)
    command.with_runtime = "--runtime" in arguments
    command.tools.host_arch = ARCHITECTURE
    try:
        options, overrides = command.parse_options(extra=["--no-input"])
        command.parse_config(Path.cwd() / "pyproject.toml", overrides=overrides)
        command(**options)
    except (BriefcaseError, HelpText) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        console.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The application's name and icon, on Linux and from source on a Mac."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.launch.display import use_utf8_locale


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_it_has_a_name_and_an_icon(platform: str) -> None:
    """On a Mac without its runtime, as here, the name in the menu bar stays, and nothing fails."""
    code = (
        "import sys\nfrom app.launch.application import Application\n"
        f"sys.platform = {platform!r}\n"
        "made = Application(['draftlight'])\n"
        "assert not made.windowIcon().pixmap(128, 128).isNull()\n"
        "print(made.applicationName(), made.applicationDisplayName(), made.desktopFileName())"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Draftlight Draftlight draftlight\n"


def test_the_bundle_keeps_its_own_icon() -> None:
    code = (
        "import sys\nfrom app.launch.application import Application\n"
        "sys.platform, sys.frozen = 'darwin', True\n"
        "assert Application(['draftlight']).windowIcon().isNull()"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    use_utf8_locale(environment)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""

"""`make app` on a pretended Mac: what is refused before the build, and the app inside the disk image."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from bundle import build
from bundle.checks import Bundle, check_template
from bundle.project import FORMAL_NAME
from tests.packaging.test_checks import PROJECT, bundle

__all__ = ["bundle"]
_HDIUTIL = """#!/bin/sh
echo "$1" >> "$LOG"
for last; do :; done
[ "$1" = attach ] && cp -R "$TREE" "$6/"
[ "$1" != verify ] || [ -f "$last" ]
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the pretended hdiutil was told; it mounts a copy of the tree."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("hdiutil", _HDIUTIL), ("codesign", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setenv("TREE", str(tmp_path / f"{FORMAL_NAME}.app"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def test_the_app_in_the_image_is_checked_and_the_image_is_let_go(bundle: Bundle, log: Path) -> None:
    image = log.with_name("a.dmg")
    image.write_bytes(b"koly")
    assert build.check_image(image, PROJECT) == 0
    (bundle.packages / "mlx" / "lib" / "mlx.metallib").unlink()
    assert build.check_image(image, PROJECT) == 1
    assert log.read_text().split() == ["verify", "attach", "detach"] * 2


def test_an_identity_signs_no_download_without_a_checksum(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(build, "build", lambda *arguments: 0)
    monkeypatch.setattr(build, "unpinned", lambda: ["stub_binary_hash"])
    assert build.main() == 0, "ad hoc: this build writes them"
    monkeypatch.setenv("DRAFTLIGHT_IDENTITY", "Developer ID Application: X")
    assert build.main() == 1
    assert "no stub_binary_hash" in capsys.readouterr().err


def test_the_template_is_checked_without_a_build() -> None:
    states = [(result.check, result.state) for result in check_template(PROJECT)]
    assert states[:3] == [("Info.plist", "ok"), ("document types", "ok"), ("entitlements", "ok")]

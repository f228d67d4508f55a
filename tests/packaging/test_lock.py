"""The lock as packaging reads it: markers, hashes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bundle.project import LOCK, PACKAGING, read_project
from bundle.supplies.lock import LockError, Target, read_lock
from bundle.supplies.wheels import LINUX, MACOS

A, B = "a" * 64, "b" * 64


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.lock"
    path.write_text(text)
    return path


def test_markers_choose_by_target(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"mlx-cpu==1.0 ; sys_platform == 'linux' \\\n    --hash=sha256:{A}\n"
        f"mlx-metal==1.0 ; sys_platform == 'darwin' \\\n    --hash=sha256:{A} \\\n    --hash=sha256:{B}\n"
        "    # via mlx\n"
        f"numpy==2.0 ; python_full_version < '3.12' \\\n    --hash=sha256:{A}\n"
        f"numpy==3.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:{B}\n",
    )
    mac = read_lock(path, MACOS)
    assert set(mac) == {"mlx-metal", "numpy"}
    assert mac["mlx-metal"].hashes == {A, B}
    assert mac["numpy"].version == "2.0"
    assert set(read_lock(path, LINUX)) == {"mlx-cpu", "numpy"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("six==1.0\n", "no hash for six"),
        (f"six==1.0 \\\n    --hash=sha256:{A}\nsix==2.0 \\\n    --hash=sha256:{A}\n", "two versions of six"),
        ("six>=1.0\n", "neither a package nor a hash"),
    ],
)
def test_a_lock_that_pins_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(LockError, match=words):
        read_lock(write(tmp_path, text), MACOS)


@pytest.mark.parametrize("target", [MACOS, LINUX], ids=["macos", "linux"])
def test_the_lock_holds_what_the_project_names(target: Target) -> None:
    locked = read_lock(LOCK, target)
    environment = target.environment
    for text in read_project().requirements:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            entry = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(entry.version, prereleases=True), text


def test_the_packager_is_locked_too() -> None:
    assert "briefcase" in read_lock(PACKAGING / "packager.lock", MACOS)
    assert "dmgbuild" in read_lock(PACKAGING / "packager.lock", MACOS)

"""The workflow calls what there is: every make target exists, every action is named by its commit."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

from bundle.project import PYTHON, ROOT

TEXT = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
WORKFLOW: dict[str, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS = [step for job in JOBS.values() for step in job["steps"]]


def commands(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_every_target_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = {name for step in STEPS for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert {"setup", "check", "test", "smoke", "wheel-check", "app"} <= called
    assert called <= targets


def test_actions_are_pinned_to_commits_with_their_versions_beside_them() -> None:
    used = re.findall(r"uses: (.+)", TEXT)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used), used


def test_no_step_keeps_the_token_of_the_checkout() -> None:
    checkouts = [step for step in STEPS if "checkout" in step.get("uses", "")]
    assert len(checkouts) == len(JOBS)
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_linux_runs_what_ci_runs_and_macs_the_same_by_name() -> None:
    assert ".ci/run" in commands("linux")
    called = [
        line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line.startswith("make ")
    ]
    assert called[:2] == ["make test", "make smoke"], "what a new user runs comes first"
    assert {"make check", "make test-sweeps"} <= set(called)
    assert set(called) <= set(commands("macos"))
    assert all(system.startswith("macos-") for system in JOBS["macos"]["strategy"]["matrix"]["system"])


def test_linux_tests_every_python_that_the_package_allows_and_the_rest_the_one_that_ships() -> None:
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    first, end = (int(minor) for minor in re.findall(r"3\.(\d+)", allowed))
    assert JOBS["linux"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(first, end)]
    versions = {
        name: step["with"]["python-version"]
        for name, job in JOBS.items()
        for step in job["steps"]
        if "setup-python" in step.get("uses", "")
    }
    assert versions.pop("linux") == "${{ matrix.python }}"
    assert set(versions.values()) == {PYTHON}


def test_packages_come_from_the_command_in_the_readme() -> None:
    for text in (TEXT, (ROOT / ".ci" / "run").read_text("utf-8")):
        assert not re.findall(r"\blib\w+\d\b", text), "a list of libraries of its own"
        assert "README.md" in text


def test_the_first_screen_of_the_readme_has_every_command_that_a_new_user_needs() -> None:
    screen = (ROOT / "README.md").read_text("utf-8").split("## Tour")[0]
    for text in ("git clone", "make run", "make test"):
        assert text in screen
    for text in ("Privacy & Security", "Open Anyway", "0.9 GB", "DRAFTLIGHT_HOME"):
        assert text in screen
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)\b", screen)) - {"comes", "is"} <= targets


def test_qt_is_checked_before_everything_that_imports_it() -> None:
    """pytest-qt imports it before any test, and the tools draw."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("test", "test-sweeps", "test-slow", "e2e", "smoke", "screens", "screenshot", "attack"):
        assert re.search(rf"^{target}: libraries\b", makefile, re.MULTILINE), target
    assert "mypy --platform $$system" in makefile


def test_the_app_is_built_on_a_tag_and_only_after_the_tests() -> None:
    assert "refs/tags/v" in JOBS["app"]["if"]
    assert set(JOBS["app"]["needs"]) == {"linux", "slow", "macos", "app-check"}
    assert "make app" in commands("app")
    assert "make test-slow" in commands("slow")

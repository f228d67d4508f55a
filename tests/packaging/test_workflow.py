"""The workflow calls what there is: every make target exists, every action has a full version."""

from __future__ import annotations

import re
from typing import Any

import yaml

from bundle.project import PYTHON, ROOT

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_every_target_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = {name for step in STEPS for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}
    assert {"setup", "check", "test", "wheel-check", "app"} <= called
    assert called <= targets


def test_actions_are_pinned_to_full_versions() -> None:
    used = {step["uses"] for step in STEPS if "uses" in step}
    assert used
    assert all(re.fullmatch(r"[\w./-]+@v\d+\.\d+\.\d+", action) for action in used), used


def test_both_systems_are_tested_with_the_bundles_python() -> None:
    systems = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["system"]
    assert {system.split("-")[0] for system in systems} == {"ubuntu", "macos"}
    versions = {step["with"]["python-version"] for step in STEPS if "setup-python" in step.get("uses", "")}
    assert versions == {PYTHON}


def test_the_app_is_built_only_after_the_tests() -> None:
    assert set(WORKFLOW["jobs"]["app"]["needs"]) == {"test", "app-check"}

"""What the project is called and where its files are: pyproject.toml is the one place for both
the version and the Python dependencies; what only the bundle needs stands here."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
LOCK = ROOT / "requirements.lock"
BUILD = ROOT / "build" / "bundle"
FORMAL_NAME = "Draftlight"
# Reverse-domain name of the bundle. Whoever publishes under a domain of their own changes it here.
BUNDLE = "org.draftlight"
IDENTIFIER = f"{BUNDLE}.draftlight"
CATEGORY = "public.app-category.productivity"
MINIMUM_MACOS = "15.0"  # the newest that a bundled library names: PySide6's bindings, built for macOS 15
ARCHITECTURE = "arm64"
# What every test runs on. PySide6 6.11 and all locked wheels are there for it.
PYTHON = "3.11"
# Fixed times in archives, so that two builds of one commit are the same (2026-01-01).
SOURCE_DATE = "1767225600"


@dataclass(frozen=True)
class Project:
    """The parts of pyproject.toml that packaging needs. `requirements` include the starter model."""

    version: str
    description: str
    requirements: tuple[str, ...]
    replaced_requirements: dict[str, tuple[str, ...]]


def read_project(path: Path = ROOT / "pyproject.toml") -> Project:
    """Raises KeyError if a field is missing."""
    with path.open("rb") as file:
        whole: dict[str, Any] = tomllib.load(file)
    project = whole["project"]
    overrides = whole.get("tool", {}).get("uv", {}).get("dependency-metadata", [])
    return Project(
        version=project["version"],
        description=project["description"],
        requirements=(*project["dependencies"], *project["optional-dependencies"]["starter"]),
        replaced_requirements={entry["name"]: tuple(entry["requires-dist"]) for entry in overrides},
    )


def source_date() -> str:
    """SOURCE_DATE_EPOCH as the environment has it, else the project's own."""
    return os.environ.get("SOURCE_DATE_EPOCH", SOURCE_DATE)

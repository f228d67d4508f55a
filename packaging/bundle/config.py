"""Briefcase's configuration, written fresh for each build into a folder of its own.

The project's pyproject.toml stays free of it: most of it is made here anyway (the locked
requirements, the version, paths into the checkout).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bundle.project import BUNDLE, CATEGORY, FORMAL_NAME, MINIMUM_MACOS, PACKAGING, PYTHON, ROOT, Project

# Of the Qt wheel the app needs its libraries and plugins, not its developer tools, the QML
# language or the headers. Signing would also have to handle three apps inside the app.
TRIMMED = (
    *("*.app", "Qt/qml", "Qt/libexec", "Qt/metatypes", "Qt/translations", "include", "typesystems", "glue"),
    *("doc", "scripts", "support", "lib", "*.pyi", "qml*", "qsb", "balsam*", "svgtoqml", "uic", "rcc"),
    *("lupdate", "lrelease", "assistant", "designer", "linguist"),
    # Database drivers load libraries from fixed places outside; the rest is for QML and Designer.
    *("Qt/plugins/sqldrivers", "Qt/plugins/designer", "Qt/plugins/qml*", "Qt/plugins/vectorimageformats"),
    *("Qt/plugins/platforminputcontexts", "Qt/plugins/imageformats/*qpdf*"),
)


def write_config(
    project: Project, folder: Path, wheels: Path, pins: Sequence[str], *, template: str = ""
) -> None:
    """`pyproject.toml` in `folder` for Briefcase; icons are expected in `folder/icon`.

    `pins` are installed from the folder `wheels` and from nowhere else. `template` replaces the
    bundle's own (for the packager's Linux format).
    """
    cleanup = ["**/app/*.dist-info", "**/app_packages/bin"]
    cleanup += [f"**/app_packages/PySide6/{path}" for path in TRIMMED]
    text = f"""\
[tool.briefcase]
project_name = {_quoted(FORMAL_NAME)}
bundle = {_quoted(BUNDLE)}
version = {_quoted(project.version)}
license = "Apache-2.0"
license-files = ["LICENSE"]
author = "The Draftlight authors"
author_email = "authors@draftlight.invalid"
url = "https://draftlight.invalid"

[tool.briefcase.app.draftlight]
formal_name = {_quoted(FORMAL_NAME)}
description = {_quoted(project.description)}
long_description = {_quoted(project.description)}
requires-python = {_quoted(f"=={PYTHON}.*")}
sources = [{_quoted(str(PACKAGING / "launcher" / "draftlight"))}]
icon = "icon/draftlight"
requires = {json.dumps(list(pins), indent=4)}
requirement_installer_args = ["--no-deps", "--no-index", "--find-links", {_quoted(str(wheels))}]
cleanup_paths = {json.dumps(cleanup)}
template = {_quoted(template or str(PACKAGING / "template"))}

[tool.briefcase.app.draftlight.macOS]
universal_build = false
min_os_version = {_quoted(MINIMUM_MACOS)}
category = {_quoted(CATEGORY)}

[tool.briefcase.app.draftlight.linux]
system_requires = []
system_runtime_requires = ["libegl1"]
"""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    (folder / "LICENSE").write_bytes((ROOT / "LICENSE").read_bytes())
    (folder / "CHANGELOG").write_bytes((ROOT / "CHANGELOG.md").read_bytes())


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's."""
    return json.dumps(text, ensure_ascii=False)

"""The About window: version, every licence, and keys."""

from __future__ import annotations

import asyncio
import importlib.metadata
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.controls.text_label import TextLabel
from app.features.about import AboutWindow, Licence, collect, encoder_licences, licence_text
from app.theme.theme import Theme


def test_it_names_the_version_and_what_is_inside(qtbot: QtBot) -> None:
    window = AboutWindow(Theme("light"), releases="")
    qtbot.addWidget(window)
    window.show()
    asyncio.run(window.read_licences())
    texts = [label.text() for label in window.findChildren(TextLabel)]
    assert f"Version {importlib.metadata.version('draftlight')}, Apache-2.0" in texts
    text = window.licences.toPlainText()
    assert f"mlx {importlib.metadata.version('mlx')}: MIT" in text
    assert "Permission is hereby granted" in text
    assert window.licences.isReadOnly()


def test_escape_closes_it(qtbot: QtBot) -> None:
    window = AboutWindow(Theme("dark"), releases="")
    window.show()
    assert window.focusWidget() is window.close_button
    with qtbot.waitSignal(window.destroyed):
        qtbot.keyClick(window, Qt.Key.Key_Escape)


def test_the_text_lists_all_and_then_quotes() -> None:
    licences = [
        Licence("alpha", "1", "MIT", ("Alpha's text.",)),
        Licence("draftlight", "0", "Apache-2.0", ("ours",)),
        Licence("zeta", "2", "", ()),
    ]
    lines = licence_text(licences).splitlines()
    assert lines[2:4] == ["alpha 1: MIT", "zeta 2: license not stated"]
    assert lines[-1] == "Alpha's text."
    assert "ours" not in lines


def package(folder: Path, name: str, fields: str, **texts: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    (info / "licenses").mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{fields}\n")
    for file, text in texts.items():
        (info / "licenses" / file).write_text(text)
    record = [f"{info.name}/licenses/{file},," for file in texts]
    (info / "RECORD").write_text("\n".join(record))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("License-Expression: MIT\nLicense: something else", "MIT"),
        ("License: BSD-3-Clause", "BSD-3-Clause"),
        (
            "License: Dual License\nClassifier: License :: OSI Approved :: BSD License\n"
            "Classifier: License :: OSI Approved :: Apache Software License",
            "BSD License, Apache Software License",
        ),
        ("Classifier: License :: OSI Approved", ""),
        ("Summary: nothing said", ""),
    ],
)
def test_the_name_of_a_licence(tmp_path: Path, fields: str, expected: str) -> None:
    package(tmp_path, "one", fields)
    (found,) = collect([str(tmp_path)])
    assert (found.package, found.version, found.name_of_licence) == ("one", "1.0", expected)


def test_texts_come_along_and_packages_are_in_order(tmp_path: Path) -> None:
    package(tmp_path, "zeta", "License: MIT", LICENSE="Do as you like.", AUTHORS="Two people", setup="no")
    package(tmp_path, "Alpha", "License: MIT")
    alpha, zeta = collect([str(tmp_path)])
    assert (alpha.package, alpha.texts) == ("Alpha", ())
    assert zeta.texts == ("Two people", "Do as you like.")


def test_everything_that_runs_here_states_a_licence() -> None:
    found = {licence.package: licence for licence in collect()}
    assert found["mlx"].name_of_licence == "MIT"
    assert "LGPL-3.0" in found["PySide6_Essentials"].name_of_licence
    assert [name for name, licence in found.items() if not licence.name_of_licence] == []


def test_the_sentence_encoder_is_listed_with_its_licence(tmp_path: Path) -> None:
    (licence,) = encoder_licences()
    assert (licence.package, licence.name_of_licence) == ("all-MiniLM-L6-v2", "Apache-2.0")
    assert "Apache License" in licence.texts[0]
    assert encoder_licences(tmp_path) == []

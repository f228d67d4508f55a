"""NOTICE.txt of the bundle: every licence, with its text."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from app.theme.fonts import FONTS, shipped_fonts
from bundle.notice import Licence, collect, encoder_licences, font_licences, fonts_in_packages, notice
from core.system.paths import resources_dir

PACKAGES = [sysconfig.get_paths()["purelib"]]


def test_the_text_lists_all_and_then_quotes() -> None:
    text = notice([Licence("alpha", "1", "MIT", ("Alpha's text.",)), *font_licences(FONTS)])
    assert "  alpha 1: MIT" in text.splitlines()
    assert text.index("  alpha 1: MIT") < text.index("Alpha's text.")
    for font in shipped_fonts():
        assert f"{font.family} {font.version}: OFL-1.1" in text
        assert (FONTS / font.licence_file).read_text("utf-8").strip() in text


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
    found = {licence.package: licence for licence in collect(PACKAGES)}
    assert found["mlx"].name_of_licence == "MIT"
    assert "LGPL-3.0" in found["PySide6_Essentials"].name_of_licence
    assert [name for name, licence in found.items() if not licence.name_of_licence] == []


@pytest.mark.sweep
def test_the_formula_packages_and_the_fonts_in_them_are_listed() -> None:
    listed = (*collect(PACKAGES), *fonts_in_packages(Path(*PACKAGES)))
    found = {licence.package: licence for licence in listed}
    assert {found[name].name_of_licence for name in ("ziamath", "ziafont", "latex2mathml")} == {"MIT"}
    dejavu, stix = found["DejaVu Sans"], found["STIX Two Math"]
    assert (dejavu.version, dejavu.name_of_licence) == ("2.37", "Bitstream-Vera")
    assert "Permission is hereby granted" in dejavu.texts[0]
    assert (stix.version, stix.name_of_licence) == ("2.11", "OFL-1.1")
    assert "The STIX Fonts Project Authors" in stix.texts[0]
    assert "SIL Open Font License" in stix.texts[0]


@pytest.mark.sweep
def test_every_font_in_the_formula_packages_is_listed() -> None:
    (packages,) = map(Path, PACKAGES)
    fonts = {each for kind in ("ttf", "otf") for each in packages.glob(f"zia*/**/*.{kind}")}
    assert len(fonts) == len(fonts_in_packages(packages))


def test_the_sentence_encoder_is_listed_with_its_licence(tmp_path: Path) -> None:
    (licence,) = encoder_licences(resources_dir() / "encoder")
    assert (licence.package, licence.name_of_licence) == ("all-MiniLM-L6-v2", "Apache-2.0")
    assert "Apache License" in licence.texts[0]
    assert encoder_licences(tmp_path) == []

"""`make readers`: what the document readers keep of real files, against independent extractors.

Office files are compared with LibreOffice (slides through its PDF and pdftotext), PDFs with pdftotext, pages
and the chapters of e-books with w3m. The files are those of `../shared/cases` where it is present, of
Debian's documentation packages and of Python packages' test data, which are downloaded through apt-get and
pip, and of every folder given; rich text is written by LibreOffice from Word and OpenDocument files. A tool
or a download that is missing is named and skipped. Writes `results.jsonl`, and the table between the marks of
docs/documents.md, where rows of formats that were not compared stay.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from core.documents.client import DocumentReading
from core.documents.limits import Limits
from core.errors import RequestError
from tests.readers.kinds import found, right
from tests.readers.measure import NOTHING, Shares, compared, tokens

_ROOT = Path(__file__).resolve().parents[2]
_DOCS = _ROOT / "docs" / "documents.md"
_TABLE = re.compile(r"(<!-- readers -->\n).*(<!-- /readers -->)", re.DOTALL)
_PYTHON_PACKAGES = (
    *("pypdf==7.1.1", "python-docx==1.2.0", "html2text==2025.4.15", "odfpy==1.4.1", "python-pptx==1.0.2"),
    *("xlrd==1.2.0", "xlsx2csv==0.8.6"),
)
_DEBIAN_PACKAGES = (
    *("debian-faq", "debian-faq-ja", "debian-faq-ru", "debian-faq-zh-cn", "developers-reference"),
    *("developers-reference-de", "developers-reference-ja", "libtasn1-doc", "shared-mime-info"),
    "live-manual-epub",
)
_ENDINGS = {
    **dict.fromkeys((".html", ".htm"), "HTML"),
    **dict.fromkeys((".pptx", ".odp"), "Slides"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), "Spreadsheet"),
    ".docx": "Word",
    ".odt": "OpenDocument",
    ".rtf": "Rich text",
    ".pdf": "PDF",
    ".epub": "EPUB",
}
_BOX = re.compile(r"(MediaBox|CropBox|rot):\s+([-\d. ]+)")
_MOST_PAGES = 100_000
_KINDS = sorted(set(_ENDINGS.values()))
_NAMES = {"PDF": "pdftotext", "HTML": "w3m", "EPUB": "w3m"}
# A module of LibreOffice that is a package of its own.
_MODULES = {"Spreadsheet": "libsclo.so", "Slides": "libsdlo.so"}
# All sheets, tabs between cells, and values as cells show them, or as stored in formats that are read so.
_CSV = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,true,{shown},false,false,-1"
_STORED = (".xls", ".xlsb")
_TEXT = "txt:Text (encoded):UTF8"
# Lines that name what the file does not say.
_OUR_LINES = re.compile(
    r"^## Slide [\d,]+:? ?|^## .*(?: \([A-Z]+\d+:[A-Z]+\d+\))$|^\[left out: .*\]$|^Notes: .*$", re.MULTILINE
)
_MOST_OF_A_FOLDER = 40
_TITLE = re.compile(rb"<title[^>]*>([^<]*)", re.I)
_LIMIT_S = 120
_GOALS = (99.0, 99.5)  # percent of words and of numbers


def main() -> int:
    parser = argparse.ArgumentParser(prog="make readers", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--docs", action="store_true", help="write the table of docs/documents.md")
    parser.add_argument("--kinds", nargs="*", default=_KINDS, metavar="KIND", help=f"of {', '.join(_KINDS)}")
    parser.add_argument("folders", type=Path, nargs="*", help="more files to compare")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kinds = set(options.kinds)
    for kind in sorted(kinds):
        if missing := _missing_tool(kind):
            print(f"{kind} is skipped: {missing} is not installed.")
            kinds.remove(kind)
    totals: dict[tuple[str, str], list[Shares]] = {}
    with (options.out / "results.jsonl").open("w", encoding="utf-8") as results:
        for source, path in _files(options.out / "files", options.folders):
            kind = _ENDINGS[path.suffix.lower()]
            if kind not in kinds:
                continue
            line = _compare(path, kind, options.out / "reference")
            shares = line.pop("shares", None)
            results.write(json.dumps({"source": source, "kind": kind, "file": path.name, **line}) + "\n")
            results.flush()
            if isinstance(shares, Shares) and shares.words:
                totals.setdefault((kind, source), []).append(shares)
            if line.get("lost") or (isinstance(shares, Shares) and not _reaches(shares)):
                print(f"{kind:5} {path.name}: {line}")
    rows = _rows(totals)
    print("".join(rows))
    if "PDF" in kinds:
        _compare_kinds(options.folders)
    if options.docs:
        docs = _DOCS.read_text()
        found = _TABLE.search(docs)
        assert found
        *head, _ = lines = found[0].splitlines(keepends=True)
        kept = [line for line in lines[3:-1] if line.split("|")[1].strip() not in kinds]
        table = "".join([*head[:3], *sorted([*rows, *kept]), lines[-1]])
        _DOCS.write_text(docs[: found.start()] + table + docs[found.end() :])
    return 0


def _compare_kinds(folders: list[Path]) -> None:
    """Print which fixtures of kinds of PDF files are right, here and with pdftotext."""
    files = found(folders)
    if not files:
        print("Kinds of PDF files are skipped: none of tests/readers/pdf_kinds.json is in the given folders.")
        return
    ours, theirs = right(files, _read), right(files, lambda path: _reference(path, "PDF", path.parent))
    for (fixture, is_right), (_, theirs_is) in zip(ours, theirs):
        if not is_right:
            print(
                f"PDF   {fixture.name}: {fixture.kind} is wrong{' (pdftotext: right)' if theirs_is else ''}"
            )
    shares = (sum(is_right for _, is_right in each) for each in (ours, theirs))
    print("Kinds of PDF files: {} right, pdftotext {}, of {}.".format(*shares, len(files)))


def _read(path: Path) -> str:
    try:
        return DocumentReading(path, Limits(whole_s=_LIMIT_S)).run().text
    except RequestError:
        return ""


def _missing_tool(kind: str) -> str:
    """The program, or its module, that the comparison of `kind` needs; empty if it is installed."""
    tool = shutil.which(_NAMES.get(kind, "soffice"))
    if tool is None or (kind == "Slides" and shutil.which("pdftotext") is None):
        return _NAMES.get(kind, "LibreOffice")
    module = _MODULES.get(kind)
    return f"LibreOffice’s {module}" if module and not (Path(tool).resolve().parent / module).exists() else ""


def _reaches(shares: Shares) -> bool:
    words, numbers, _, added = shares.percent
    return words >= _GOALS[0] and numbers >= _GOALS[1] and added <= 1.0


def _compare(path: Path, kind: str, scratch: Path) -> dict[str, object]:
    """The shares of one file, or why there are none."""
    try:
        theirs = tokens(_reference(path, kind, scratch))
    except (subprocess.SubprocessError, OSError) as error:
        return {"reference failed": type(error).__name__}
    try:
        ours = DocumentReading(path, Limits(whole_s=_LIMIT_S)).run().text
    except RequestError as error:
        return {"refused": error.message, "lost": len(theirs)}
    shares = compared(tokens(_OUR_LINES.sub("", ours)), theirs)
    names = ("words", "numbers", "order", "added")
    return {"shares": shares, **dict(zip(names, (round(each, 2) for each in shares.percent)))}


def _reference(path: Path, kind: str, scratch: Path) -> str:
    if kind == "PDF":
        read = ["pdftotext", "-enc", "UTF-8", str(path), "-"]
        return "".join(_run([*read[:1], *inside, *read[1:]]) for inside in _inside_crop(path))
    if kind == "HTML":
        body = _page(path)
        found = _TITLE.search(path.read_bytes())
        title = " ".join(html.unescape(found[1].decode("utf-8", "replace")).split()) if found else ""
        return body if " ".join(body[:1000].split()).startswith(title) else f"{title}\n{body}"
    if kind == "EPUB":
        return _book(path, scratch / "book")
    shown = "false" if path.suffix.lower() in _STORED else "true"
    form = {"Spreadsheet": _CSV.format(shown=shown), "Slides": "pdf"}.get(kind, _TEXT)
    written = _converted(path, form, scratch)
    if kind == "Slides":
        return "".join(_run(["pdftotext", "-enc", "UTF-8", str(each), "-"]) for each in written)
    return "\n".join(each.read_text("utf-8-sig") for each in written)


def _inside_crop(path: Path) -> Iterator[list[str]]:
    """Options of pdftotext for each run of pages with the same boxes.

    Outside of the crop box it gives words that no viewer shows. Its area is given by the media box, upright:
    turned pages are read whole.
    """
    found = _BOX.findall(_run(["pdfinfo", "-f", "1", "-l", str(_MOST_PAGES), "-box", str(path)]))
    media, crop, turns = (
        [told for name, told in found if name == box] for box in ("MediaBox", "CropBox", "rot")
    )
    if media == crop:
        yield []
        return
    first = 1
    for (*edges, turn), run in groupby(zip(media, crop, turns)):
        last = first + len(list(run)) - 1
        (media_left, _, _, media_top), (left, bottom, right, top) = (
            tuple(map(float, each.split())) for each in edges
        )
        area = {"x": left - media_left, "y": media_top - top, "W": right - left, "H": top - bottom}
        area = area if turn.strip() == "0" else {}
        sides = (part for name, points in area.items() for part in (f"-{name}", str(round(points))))
        yield ["-f", str(first), "-l", str(last), *sides]
        first = last + 1


def _page(path: Path) -> str:
    # Without names of pictures, and marks of deleted text; w3m leaves out the title.
    options = ["-cols", "4000", "-o", "pseudo_inlines=0", "-o", "display_ins_del=0"]
    return _run(["w3m", "-dump", *options, "-O", "UTF-8", "-T", "text/html", str(path)])


def _book(path: Path, scratch: Path) -> str:
    """The title of an e-book and its chapters, by the order of its package file."""
    shutil.rmtree(scratch, ignore_errors=True)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(scratch)
    package = next(scratch.rglob("*.opf"))
    tree = ElementTree.parse(package)
    items = {each.get("id"): each.get("href", "") for each in tree.iterfind(".//{*}item")}
    # Some books have an entry for each place in a chapter.
    found = (items[each.get("idref")].partition("#")[0] for each in tree.iterfind(".//{*}itemref"))
    chapters = list(dict.fromkeys(found))
    title = tree.findtext(".//{*}title") or ""
    return "\n".join([title, *(_page(package.parent / unquote(chapter)) for chapter in chapters)])


def _converted(path: Path, form: str, scratch: Path) -> list[Path]:
    """The files that LibreOffice makes of `path`."""
    written = scratch / "written"
    shutil.rmtree(written, ignore_errors=True)
    written.mkdir(parents=True)
    home = f"-env:UserInstallation=file://{scratch.resolve()}/profile"
    _run(["soffice", home, "--headless", "--convert-to", form, "--outdir", str(written), str(path)])
    if not (found := sorted(written.iterdir())):
        raise FileNotFoundError(path)
    return found


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=True)
    return done.stdout.decode("utf-8", "replace")


def _files(downloads: Path, folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Every file to compare, with the name of its source."""
    cases = _ROOT.parent / "shared" / "cases"
    if not cases.is_dir():
        cases = _ROOT.parent.parent / "shared" / "cases"
    sources = [("cases", cases), *_downloaded(downloads), *((folder.name, folder) for folder in folders)]
    if not _missing_tool("Rich text"):
        sources += _rich_texts(downloads)
    for source, folder in sources:
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS)
        for kind in sorted(set(_ENDINGS.values())):
            of_kind = [path for path in found if _ENDINGS[path.suffix.lower()] == kind and path.is_file()]
            of_kind = [path for path in of_kind if kind != "Slides" or not _has_charts(path)]
            # Evenly over a large folder, and the same ones each time.
            step = max(1, len(of_kind) // _MOST_OF_A_FOLDER)
            yield from ((source, path) for path in of_kind[::step])


def _has_charts(path: Path) -> bool:
    """Whether a presentation has charts or diagrams, of which LibreOffice draws other labels."""
    with zipfile.ZipFile(path) as archive:
        return any(name.startswith(("ppt/charts/", "ppt/diagrams/")) for name in archive.namelist())


def _rich_texts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Rich text that LibreOffice writes from the packages' files of other formats."""
    for name, ending in (("python-docx", "docx"), ("odfpy", "odt")):
        place = folder / f"{name}-rtf"
        if not place.is_dir():
            place.mkdir()
            for number, path in enumerate(sorted((folder / name).rglob(f"*.{ending}"))):
                with contextlib.suppress(subprocess.SubprocessError, OSError):
                    (written,) = _converted(path, "rtf", folder / "reference")
                    written.rename(place / f"{number}-{written.name}")
        yield f"{name}, by LibreOffice", place


def _downloaded(folder: Path) -> Iterator[tuple[str, Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    for package in _PYTHON_PACKAGES:
        name = package.partition("=")[0]
        place = folder / name
        if not place.is_dir():
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", package]
            if not _fetched(command, folder, package):
                continue
            place.mkdir()
            archive = next(folder.glob(f"{name.replace('-', '?')}-*.tar.gz"))
            with tarfile.open(archive) as tar:
                tar.extractall(place, filter="data")
        yield name, place
    for package in _DEBIAN_PACKAGES:
        place = folder / package
        if not place.is_dir():
            if not shutil.which("apt-get") or not _fetched(["apt-get", "download", package], folder, package):
                continue
            _run(["dpkg-deb", "-x", str(next(folder.glob(f"{package}_*.deb"))), str(place)])
        yield "Debian documentation", place


def _fetched(command: list[str], folder: Path, package: str) -> bool:
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=600)
    if done.returncode:
        print(f"{package} is skipped: it could not be downloaded.")
    return done.returncode == 0


def _rows(totals: dict[tuple[str, str], list[Shares]]) -> list[str]:
    lines = []
    for (kind, source), each in totals.items():
        whole = sum(each, NOTHING)
        kept = " | ".join(f"{share:.2f} %" for share in whole.percent)
        against = _NAMES.get(kind, "LibreOffice")
        lines.append(f"| {kind} | {source} | {len(each)} | {whole.words:,} | {kept} | {against} |\n")
    return lines


if __name__ == "__main__":
    sys.exit(main())

"""`make readers`: what the document readers keep of real files, against independent extractors.

Word files are compared with LibreOffice, PDFs with pdftotext, pages with w3m. The files are those of
`../shared/cases` where it is present, of Debian's documentation packages and of Python packages' test data,
which are downloaded through apt-get and pip, and of every folder given. A tool or a download that is missing
is named and skipped. Writes `results.jsonl`, and the table between the marks of docs/documents.md.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from core.documents.client import DocumentReading
from core.documents.limits import Limits
from core.errors import RequestError
from tests.readers.measure import NOTHING, Shares, compared, tokens

_ROOT = Path(__file__).resolve().parents[2]
_DOCS = _ROOT / "docs" / "documents.md"
_TABLE = re.compile(r"(<!-- readers -->\n).*(<!-- /readers -->)", re.DOTALL)
_PYTHON_PACKAGES = ("pypdf==7.1.1", "python-docx==1.2.0", "html2text==2025.4.15")
_DEBIAN_PACKAGES = (
    *("debian-faq", "debian-faq-ja", "debian-faq-ru", "debian-faq-zh-cn", "developers-reference"),
    *("developers-reference-de", "developers-reference-ja", "libtasn1-doc", "shared-mime-info"),
)
_ENDINGS = {".docx": "Word", ".pdf": "PDF", ".html": "HTML", ".htm": "HTML"}
_TOOLS = {"Word": "soffice", "PDF": "pdftotext", "HTML": "w3m"}
_NAMES = {"Word": "LibreOffice", "PDF": "pdftotext", "HTML": "w3m"}
_MOST_OF_A_FOLDER = 40
_TITLE = re.compile(rb"<title[^>]*>([^<]*)", re.I)
_LIMIT_S = 120
_GOALS = (99.0, 99.5)  # percent of words and of numbers


def main() -> int:
    parser = argparse.ArgumentParser(prog="make readers", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--docs", action="store_true", help="write the table of docs/documents.md")
    parser.add_argument("folders", type=Path, nargs="*", help="more files to compare")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    missing = {kind for kind, tool in _TOOLS.items() if shutil.which(tool) is None}
    for kind in sorted(missing):
        print(f"{kind} is skipped: {_TOOLS[kind]} is not installed.")
    totals: dict[tuple[str, str], list[Shares]] = {}
    with (options.out / "results.jsonl").open("w", encoding="utf-8") as results:
        for source, path in _files(options.out / "files", options.folders):
            kind = _ENDINGS[path.suffix.lower()]
            if kind in missing:
                continue
            line = _compare(path, kind, options.out / "reference")
            shares = line.pop("shares", None)
            results.write(json.dumps({"source": source, "kind": kind, "file": path.name, **line}) + "\n")
            results.flush()
            if isinstance(shares, Shares) and shares.words:
                totals.setdefault((kind, source), []).append(shares)
            if line.get("lost") or (isinstance(shares, Shares) and not _reaches(shares)):
                print(f"{kind:5} {path.name}: {line}")
    table = _table(totals)
    print(table)
    if options.docs and missing:
        print("docs/documents.md is left as it is: a table without these formats would lose rows.")
    elif options.docs:
        _DOCS.write_text(_TABLE.sub(lambda found: f"{found[1]}{table}{found[2]}", _DOCS.read_text()))
    return 0


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
        ours = DocumentReading(path, Limits(whole_s=_LIMIT_S)).run()
    except RequestError as error:
        return {"refused": error.message, "lost": len(theirs)}
    shares = compared(tokens(ours), theirs)
    names = ("words", "numbers", "order", "added")
    return {"shares": shares, **dict(zip(names, (round(each, 2) for each in shares.percent)))}


def _reference(path: Path, kind: str, scratch: Path) -> str:
    if kind == "PDF":
        return _run(["pdftotext", "-enc", "UTF-8", str(path), "-"])
    if kind == "HTML":
        # Without names of pictures, and marks of deleted text; w3m leaves out the title.
        options = ["-cols", "4000", "-o", "pseudo_inlines=0", "-o", "display_ins_del=0"]
        body = _run(["w3m", "-dump", *options, "-O", "UTF-8", "-T", "text/html", str(path)])
        found = _TITLE.search(path.read_bytes())
        title = " ".join(html.unescape(found[1].decode("utf-8", "replace")).split()) if found else ""
        return body if " ".join(body[:1000].split()).startswith(title) else f"{title}\n{body}"
    scratch.mkdir(parents=True, exist_ok=True)
    home = f"-env:UserInstallation=file://{scratch.resolve()}/profile"
    form = "txt:Text (encoded):UTF8"
    _run(["soffice", home, "--headless", "--convert-to", form, "--outdir", str(scratch), str(path)])
    written = scratch / f"{path.stem}.txt"
    text = written.read_text("utf-8-sig")
    written.unlink()
    return text


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=True)
    return done.stdout.decode("utf-8", "replace")


def _files(downloads: Path, folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Every file to compare, with the name of its source."""
    cases = _ROOT.parent / "shared" / "cases"
    if not cases.is_dir():
        cases = _ROOT.parent.parent / "shared" / "cases"
    sources = [("cases", cases), *_downloaded(downloads), *((folder.name, folder) for folder in folders)]
    for source, folder in sources:
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS)
        for kind in sorted(set(_ENDINGS.values())):
            of_kind = [path for path in found if _ENDINGS[path.suffix.lower()] == kind and path.is_file()]
            # Evenly over a large folder, and the same ones each time.
            step = max(1, len(of_kind) // _MOST_OF_A_FOLDER)
            yield from ((source, path) for path in of_kind[::step])


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


def _table(totals: dict[tuple[str, str], list[Shares]]) -> str:
    lines = [
        "| format | files from | files | words | words kept | numbers kept | order kept | added "
        "| against |\n",
        "|---|---|--:|--:|--:|--:|--:|--:|---|\n",
    ]
    for (kind, source), each in sorted(totals.items()):
        whole = sum(each, NOTHING)
        kept = " | ".join(f"{share:.2f} %" for share in whole.percent)
        lines.append(f"| {kind} | {source} | {len(each)} | {whole.words:,} | {kept} | {_NAMES[kind]} |\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""Additions to the packager's tree before it is signed: document types, licences and bytecode.

The packager removes bytecode, which names the folder it was compiled in, and its launcher writes none,
so every start would compile a thousand modules. They are compiled ahead, by hash instead of by time,
under the names they have inside the bundle.
"""

from __future__ import annotations

import compileall
import plistlib
import shutil
from pathlib import Path
from py_compile import PycInvalidationMode

from bundle.notice import write_notice
from bundle.project import ROOT
from core.documents.types import DOCUMENT_TYPES


def finish(resources: Path) -> None:
    """`resources` holds `app` and `app_packages`; on macOS `Info.plist` is beside it.

    `prepare()` has checked that this Python has the version of the bundle's.
    """
    info = resources.parent / "Info.plist"
    if info.is_file():
        write_document_types(info)
    write_notice(resources)
    shutil.copyfile(ROOT / "LICENSE", resources / "LICENSE.txt")
    for folder in ("app", "app_packages"):
        # Templates and files for other Pythons fail to compile and are left as they are.
        compileall.compile_dir(
            resources / folder,
            maxlevels=40,
            quiet=2,
            stripdir=str(resources),
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            workers=0,
        )


def write_document_types(info: Path) -> None:
    """Declare every document type that the app reads (`core.documents.types`) in `Info.plist`.

    As a viewer among others: the app takes over no file type.
    """
    content = plistlib.loads(info.read_bytes())
    content["CFBundleDocumentTypes"] = [
        {
            "CFBundleTypeName": kind.title,
            "CFBundleTypeRole": "Viewer",
            "LSHandlerRank": "Alternate",
        }
        | ({"LSItemContentTypes": list(kind.uniform_types)} if kind.uniform_types else {})
        | ({"CFBundleTypeExtensions": list(kind.endings)} if kind.endings else {})
        for kind in DOCUMENT_TYPES
    ]
    info.write_bytes(plistlib.dumps(content))

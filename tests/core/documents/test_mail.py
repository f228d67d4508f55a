"""Mail messages: what a mail program shows, and what is attached."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from core.documents.reading import document_text
from core.errors import RequestError


def message(subject: str = "Größe der Förde") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Åse Quay <ase@example.org>"
    mail["To"] = "b@example.org, c@example.org"
    mail["Date"] = "Fri, 03 May 2024 14:22:00 +0200"
    mail["Subject"] = subject
    mail["X-Other"] = "not shown"
    return mail


HEAD = (
    "# Größe der Förde\n\nFrom: Åse Quay <ase@example.org>\nTo: b@example.org, c@example.org\n"
    "Date: Fri, 03 May 2024 14:22:00 +0200"
)


def test_a_message_has_its_fields_its_html_and_the_names_of_its_attachments(tmp_path: Path) -> None:
    mail = message()
    mail.set_content("Plain words")
    mail.add_alternative("<p>Words of the <b>page</b></p><table><tr><td>a<td>1</table>", subtype="html")
    mail.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="Müll.pdf")
    inner = message("Inner")
    inner.set_content("Forwarded words", charset="iso-8859-1", cte="quoted-printable")
    mail.add_attachment(inner)
    path = tmp_path / "a.eml"
    path.write_bytes(bytes(mail))
    assert document_text(path) == (
        f"{HEAD}\n\nWords of the page\n\na\t1\n\n[left out: the attachment “Müll.pdf”]\n\n"
        f"{HEAD.replace('# Größe der Förde', '## Inner')}\n\nForwarded words"
    )


def test_alternatives_without_words_give_way_to_the_plain_text(tmp_path: Path) -> None:
    mail = message()
    mail.set_content("Plain words")
    mail.add_alternative("<img src=x>", subtype="html")
    path = tmp_path / "a.eml"
    path.write_bytes(bytes(mail))
    assert document_text(path) == f"{HEAD}\n\nPlain words"


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("utf-8", "Grüße aus dem Hafen, 12 €".encode()),
        ("windows-1252", "Grüße aus dem Hafen, 12 €".encode("cp1252")),
        ("iso-8859-1", "Grüße aus dem Hafen, 12 €".encode("cp1252")),
        ("x-unknown", "Grüße aus dem Hafen, 12 €".encode()),
        ("", "Grüße aus dem Hafen, 12 €".encode("cp1252")),
    ],
)
def test_text_is_decoded_by_its_charset(tmp_path: Path, charset: str, data: bytes) -> None:
    kind = f'Content-Type: text/plain; charset="{charset}"\n' if charset else ""
    path = tmp_path / "a.eml"
    path.write_bytes(
        f"Subject: =?ISO-8859-1?Q?Gr=FC=DFe?=\n{kind}Content-Transfer-Encoding: 8bit\n\n".encode() + data
    )
    assert document_text(path) == "# Grüße\n\nGrüße aus dem Hafen, 12 €"


def test_a_saved_page_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mhtml"
    path.write_text(
        "Subject: Harbour\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\n"
        "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable\n\n"
        "<h1>Har=\nbour</h1><p>a=3Db\n"
        "--b\nContent-Type: image/png\nContent-Location: x.png\n\nxx\n--b--\n"
    )
    assert document_text(path) == "# Harbour\n\n# Harbour\n\na=b"


def test_files_that_are_no_messages(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text("Dear harbour,\n\nno fields here.\n")
    assert document_text(path) == "Dear harbour,\n\nno fields here.\n"
    path.write_bytes(b"Subject: x\n" + bytes(range(256)) * 4)
    assert document_text(path) == "# x"
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(RequestError, match="is not a text"):
        document_text(path)
    # Depth and broken fields.
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(400))
    path.write_text(f"Subject: =?utf-8?b?!!!?= =?x?q?=FF?=\n{nested}\nwords")
    assert document_text(path).startswith("# ")

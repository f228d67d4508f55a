"""Encodings as people have them: the words come out, or the guess is marked as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.text import codec_of, decode

TEXTS = {
    "German": ("Der Preis beträgt 5 € für Müller, ab März täglich.", ("cp1252", "iso8859-15")),
    "Swedish": ("Mötet beslutade att höja priset på fågelfrö.", ("cp1252", "cp850", "mac_roman")),
    "Spanish": ("El año pasado, ¿cuánto costó el café? Señor Núñez.", ("cp1252", "cp850")),
    "Polish": ("Omówiono budżet na przyszły rok. Źródła są ważne.", ("cp1250", "iso8859_2", "cp852")),
    "Czech": ("Příliš žluťoučký kůň úpěl ďábelské ódy.", ("cp1250", "cp852")),
    "Turkish": ("Toplantı tutanağı: bütçeyi görüştük. Şimdi ığdır.", ("cp1254",)),
    "Latvian": ("Sapulces protokols: apspriedām budžetu nākamajam gadam.", ("cp1257",)),
    "Russian": ("Протокол собрания: обсуждали бюджет.", ("cp1251", "koi8_r", "cp866", "iso8859_5")),
    "Ukrainian": ("Протокол зборів: обговорили бюджет, є їжа.", ("cp1251", "koi8_u")),
    "Greek": ("Πρακτικά συνεδρίασης: συζητήθηκε ο προϋπολογισμός.", ("cp1253", "iso8859_7")),
    "Hebrew": ("פרוטוקול הישיבה: דנו בתקציב", ("cp1255", "iso8859_8")),
    "Arabic": ("محضر الاجتماع: ناقشنا الميزانية", ("cp1256", "iso8859_6")),
    "Thai": ("รายงานการประชุม: วันนี้เราพูดคุยเรื่องงบประมาณ", ("cp874",)),
    "Chinese": ("会议纪要：本次会议讨论了预算。", ("gbk", "gb18030")),
    "Taiwanese": ("會議紀錄：本次會議討論了預算。", ("big5",)),
    "Japanese": ("議事録：本日の会議では予算について話し合いました。", ("shift_jis", "euc_jp", "iso2022_jp")),
    "Korean": ("회의록: 오늘 회의에서는 예산을 논의했습니다.", ("cp949", "euc_kr")),
}
CASES = [(name, codec) for name, (_, codecs) in TEXTS.items() for codec in codecs]


@pytest.mark.parametrize(("name", "codec"), CASES)
@pytest.mark.parametrize("around", ["", "Invoice 2024-117, total 12.50\n"], ids=["alone", "with English"])
def test_old_encodings_are_recognised(name: str, codec: str, around: str) -> None:
    text = around + f"{TEXTS[name][0]}\n" * 3
    assert decode(text.encode(codec)).text == text


@given(st.integers(0, 400), st.sampled_from([0x80, 0xFC, 0xFF, 0xC3]))
def test_one_bad_byte_costs_one_character(at: int, byte: int) -> None:
    text = "Größe: 12 cm. Preis: 5 €. 注意：温度\n" * 10
    at = min(at, len(text))
    data = text[:at].encode() + bytes([byte]) + text[at:].encode()
    found = decode(data)
    assert found.encoding == "utf-8"
    assert found.text == text[:at] + "\ufffd" + text[at:]


@given(st.integers(1, 40))
def test_a_text_cut_inside_a_character_loses_that_one_alone(cut: int) -> None:
    text = "Größe: 12 cm. Preis: 5 €. 注意：温度" * 3
    data = text.encode()[:-cut]
    whole = data.decode("utf-8", "ignore")
    assert decode(data).text.rstrip("\ufffd") == whole
    assert decode("Tides".encode("utf-16-le")[:-1]).text == "Tide\ufffd"


def test_a_short_guess_is_marked() -> None:
    """Two encodings explain “naïve café” equally well."""
    assert not decode("naïve café".encode("cp1252")).certain
    assert decode("Größe".encode()).certain
    assert decode(
        ("Protokół: omówiono budżet na rok. Źródła są ważne.\n" * 5).encode("cp1250")
    ).text.startswith("Prot")


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("iso-8859-1", "cp1252"),
        ("US-ASCII", "cp1252"),
        ("gb2312", "gb18030"),
        ("Shift_JIS", "cp932"),
        ("euc-kr", "cp949"),
        ("iso-8859-9", "cp1254"),
        ("big5", "big5hkscs"),
        ("windows-1251", "cp1251"),
        ("utf-8", "utf-8"),
    ],
)
def test_labels_mean_what_browsers_read(label: str, codec: str) -> None:
    assert codec_of(label) == codec


def test_what_a_label_adds_to_its_standard() -> None:
    assert decode(b"It\x92s \x93fine\x94", "iso-8859-1").text == "It’s “fine”"
    assert decode("①髙㈱".encode("cp932"), "Shift_JIS").text == "①髙㈱"
    assert decode("朱镕基".encode("gbk"), "gb2312").text == "朱镕基"
    assert decode("价格".encode("gbk") + b"\x805", "gbk").text == "价格€5"

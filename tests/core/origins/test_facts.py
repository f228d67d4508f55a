"""Which facts of an answer stand in its sources: cases by the kind of writing."""

from __future__ import annotations

from typing import Any

import pytest

from core.origins import Fact, Index, Source, Tracer, trace

RULES = """# House rules of Lindenhof

Owner: Anna Keller, Gartenstraße 12, 80331 München. Caretaker: Dr. Peter Schmidt, Tel. +49 89 123-4567.
The rent is 1,200 euros per month; the deposit is EUR 3,600. Notice must be given three months in advance.
The lease began on 28 November 2026 and ends on 2028-03-01. Quiet hours: 10 pm to 6:30 am.
Growth was 12.5 % in 2025 and -3 % in 2024. The boiler X-500 (firmware v2.3.1) weighs 85 kg and has 1.5 bar.
The World Health Organization and the International Energy Agency were asked. Half of the flats are let.
Up to 5 million dollars are insured. Write to keller@lindenhof.example or see https://lindenhof.example/rules.
Washing is allowed for thirty-five minutes. 20 of 48 flats have two or more rooms; see section 4.2, table 3.

| Item | Q1 | Q2 |
|---|---|---|
| Water (m³) | 410 | 432 |
| Heating (€) | 8,400 | 9,100 |
"""

STAND = {
    "thousands": "The rent is 1200 euros, €1,200, 1.200 €, 1 200 euros, 1'200 EUR or EUR 1,200.00.",
    "scale": "It is insured up to $5 million, $5M, 5,000,000 dollars or US$5m.",
    "number words": "Give notice three months before, i.e. 3 months; wash for 35 minutes; 2 rooms.",
    "glued units": "It weighs 85kg at 1.5bar, and growth was 12.5% or 12.5 percent or 12,5 Prozent.",
    "dates": "From 28.11.2026 (2026-11-28, November 28, 2026, 28th of November 2026) or 11/28/2026 on.",
    "German dates": "Der Vertrag begann am 28. November 2026 und endet am 1. März 2028.",
    "French dates": "Le bail commence le 28 novembre 2026 et se termine le 1er mars 2028.",
    "Japanese dates": "2026年11月28日から2028年3月1日まで。敷金は3600ユーロ、重さは八十五キロ。",
    "month and year": "It began in November 2026, on 28 November, and ends in March 2028.",
    "times": "Be quiet from 22:00 to 6:30, that is 10 p.m. to 06:30 (6.30 Uhr, 6h30).",
    "signs": "It was −3 % in 2024: a fall of 3%.",
    "ranges": "In 2024–2025 it was between -3 % and 12.5 %.",
    "identifiers": "The X-500 (X500) has firmware 2.3.1 (v2.3.1); see § 4.2 and table 3.",
    "addresses": "Mail keller@lindenhof.example, see https://lindenhof.example/rules, call +49 89 1234567.",
    "cells": "Water: 410 m³ in Q1 and 432 m³ in Q2. Heating: €8,400 and 9,100 €.",
    "short names": "Ms Keller owns it, Mr. Schmidt's phone. Keller’s house: Lindenhof, Munich.",
    "full names": "Dr Peter Schmidt looks after it; Anna Keller owns it.",
    "abbreviations": "The WHO and the IEA were asked.",
    "list markers": "1. The rent is due.\n2. Quiet hours apply.\n3) Notice.\n\n## 7. Rules\n\nStep 9: Wash.",
    "bold labels": "- **Monthly Rent:** 1,200 euros\n- **Quiet Hours**: 10 pm\n\n### Key Takeaways",
    "sentence starts": "However, notice is needed. Additionally, one may wash. Tenants pay. Yes.",
    "after colons": "Rules: Tenants pay. Note: Washing is allowed. “Quiet” (Please be quiet) applies.",
    "structure": "There are three main points, two reasons and 4 steps. First, pay. (1) Pay, (2) be quiet.",
    "citations": "The rent is due [1], monthly [2][^3].",
    "computed": "Rent and deposit, 1,200 + 3,600, are 4,800 euros; that is 3 times 1,200.",
    "difference": "Water rose from 410 to 432 m³, by 22 m³ or 5.4 %.",
    "share": "20 of 48 flats, 41.7 %, have two rooms.",
    "quotations": "It says “the rent is 1,200 euros per month” and \"quiet hours: 10 pm … 6:30 am\".",
    "question": "You asked about 999 things and Mr Jones: 999.",
    "links": "See [the rules](https://other.example/12345/page-77).",
    "tables": "| Item | Q1 |\n|---|---|\n| Water (m³) | 410 |\n| Heating | 8,400 € |",
    "line breaks": "The deposit is EUR\n3,600 and the rent 1,200\neuros.",
}  # fmt: skip

WRITTEN = {
    "3.500,– € oder 1.250,-- EUR, CHF 12.–": "3500 Euro, 1.250,00 € und 12 CHF",
    "wash £2.50, dry 60p, 45 ct": "£2.50, £0.60 and €0.45",
    "５００円と50％、￥１，２００": "500円、50%、1,200円",
    "from 3 to 17 November": "3 November to 17 November",
    "vom 3. auf den 17. November": "am 3. November und am 17. November",
    "open 9–18.30 Uhr": "von 9:00 bis 18:30 Uhr",
    "it takes 2 h 15 min": "2 hours and 15 minutes",
    "30 (thirty) consecutive days": "30 days",
    "5 to 10 kg, 18–22 °C": "5 kg to 10 kg, 18 °C to 22 °C",
    "tel. 0511 / 44 78 90": "0511 447890",
    "two and a half years, dreieinhalb Monate": "2.5 years, 3.5 Monate",
    "| a | Revenue ($M) |\n|---|---|\n| b | 5.1 |": "$5.1 million",
    "Herr Müller aus Zürich": "Mr Mueller lives in Zurich",
    "Sgt Okafor came": "he met Sergeant Okafor",
    "120 at 89.90 EUR": "2 × 89.90 + 120 = 299.80 EUR with 2 of 120",
    "two rooms": "ask for 2 rooms",
}  # fmt: skip

NOWHERE = {
    "The rent is 1,300 euros.": ["1,300 euros"],
    "The rent is $1,200.": ["$1,200"],
    "It weighs 85 g, or 86 kg.": ["85 g", "86 kg"],
    "Growth was -12.5 % in 2023.": ["-12.5 %", "2023"],
    "It ends on 2 March 2028, not in May 2028 or on 28 November 2027.": [
        "2 March 2028", "May 2028", "28 November 2027",
    ],
    "Quiet hours start at 9 pm or 22:30.": ["9 pm", "22:30"],
    "Give notice four months before, or nine weeks.": ["four months", "nine weeks"],
    "The X-501 has firmware v2.3.2 (ISO 9001).": ["X-501", "v2.3.2", "ISO 9001"],
    "Write to schmidt@lindenhof.example or call +49 89 7654321.": [
        "schmidt@lindenhof.example", "+49 89 7654321",
    ],
    "The owner, Maria Huber, lives in Berlin. Mr Jones and Peter Keller agree with NASA.": [
        "Maria Huber", "Berlin", "Jones", "Peter Keller", "NASA",
    ],
    "Der Hausmeister ist Hans Meier.": ["Hans Meier"],
    "Le propriétaire est M. Dupont, à Lyon.": ["Dupont", "Lyon"],
    "家賃は1300ユーロで、四十日前に通知します。": ["1300ユーロ", "四十日"],
    "It says “pets must be kept on a leash at all times”.": ["pets must be kept on a leash at all times"],
    "- **Contact:** Maria Huber\n- **Maria Huber** is the owner": ["Maria Huber", "Maria Huber"],
    "| Owner | Rent |\n|---|---|\n| Maria Huber | 1,250 € |": ["Maria Huber", "1,250 €"],
    "Together 1,200 + 3,600 make 4,900 euros.": ["4,900 euros"],
    "Anna Keller said: Berlin.": [],
    "Seit Montag gilt die Regel für 7 Millionen Euro.": ["7 Millionen Euro"],
}  # fmt: skip


def facts(answer: str, document: str, question: str = "", **more: Any) -> tuple[Fact, ...]:
    """The facts of an answer about one document."""
    index = Index(document)
    assert index.build()
    return trace(answer, [Source("document", document)], [index], question, **more).facts


def marked(answer: str, document: str, question: str = "") -> list[str]:
    """Texts of the facts that stand nowhere."""
    found = facts(answer, document, question)
    return [answer[each.start : each.end] for each in found if each.state == "nowhere"]


@pytest.mark.parametrize("name", STAND)
def test_what_stands_somewhere_is_not_marked(name: str) -> None:
    assert marked(STAND[name], RULES, "Who is Mr Jones, and what about 999 things?") == []


@pytest.mark.parametrize("document", WRITTEN)
def test_one_quantity_is_written_in_several_ways(document: str) -> None:
    assert marked(WRITTEN[document], f"Rules: {document}.", "What about 2?") == []
    assert facts(WRITTEN[document], document)


@pytest.mark.parametrize(
    ("document", "answer", "wrong"),
    [
        ("two rooms, and three years", "It has 2 rooms; it takes 2 years.", ["2 years"]),
        ("Rooms 1, 2, 3 are let.", "It takes 2 years.", ["2 years"]),
        ("60p a wash", "It costs £60.60.", ["£60.60"]),
        ("from 3 to 17 November", "on 4 November", ["4 November"]),
        ("fan stopped at 14:22:00", "It stopped at 14:22:41.", ["14:22:41"]),
        ("120 at 90 EUR", "2 × 90 + 120 = 310 EUR, for 2.", ["310 EUR"]),
    ],
)
def test_another_quantity_stands_nowhere(document: str, answer: str, wrong: list[str]) -> None:
    assert marked(answer, document, "What about 2?") == wrong


@pytest.mark.parametrize("answer", NOWHERE)
def test_what_stands_nowhere_is_marked(answer: str) -> None:
    assert marked(answer, RULES) == NOWHERE[answer]


REFERENCES = """# § 9 Dogs

Section 4.2 and Article 12 (3) apply; see clauses 5, 6 and 7. Art. 12 Abs. 4 gilt. 第8条 applies.

## 4.10 Notice

11. A room has 21 m² and 23 windows, for 24 months. House No. 17 was built on 26 May 2019.
"""


@pytest.mark.parametrize(
    "answer",
    [
        "See § 9, section 4.2 and Section 4.10.",
        "Article 12, Art. 12 and Clause 7; clauses 5 to 6; Section 11; Section 4.",
        "Siehe § 9, Artikel 12, Abs. 4 und Abschnitt 4.10.",
        "Voir l'article 12, la section 4.2 et le chapitre 4.",
        "第8条と第9条、第12条を参照。",
        "House number 17, no. 23.",
    ],
)
def test_a_reference_stands_where_the_document_has_its_number_as_one(answer: str) -> None:
    assert marked(answer, REFERENCES) == []


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("See § 21, Section 4.3, Art. 24 and Clause 23.", ["21", "4.3", "24", "23"]),
        ("See Section 4.1.", ["4.1"]),  # 4.10 is another one
        ("Siehe § 23, Artikel 24 und Abs. 21.", ["23", "24", "21"]),
        ("Voir l'article 23 et le chapitre 24.", ["23", "24"]),
        ("第23条と第24条を参照。", ["23", "24"]),
        ("See no. 26 and Nr. 21.", ["26", "21"]),  # of a date and with a unit only
    ],
)
def test_an_invented_reference_is_marked(answer: str, wrong: list[str]) -> None:
    assert marked(answer, REFERENCES) == wrong


@pytest.mark.parametrize(
    ("document", "answer", "wrong"),
    [
        ("It lasts 24 months.", "It lasts two years.", ["two years"]),
        ("Es dauert 90 Minuten.", "Es dauert 90 Minuten, 1,5 Stunden.", ["1,5 Stunden"]),
        ("It weighs 2.5 kg.", "It weighs 2500 g.", ["2500 g"]),
        ("The prize is £38.", "The prize is £38; half of it is £19, not £18.", ["£18"]),
        ("Die Miete ist 900 Euro.", "Von 900 Euro ist ein Drittel 300 Euro.", []),
        ("Le prix est 1 236,50 €.", "Le prix est 1 236,50 € ; un douzième, soit 103,04 €.", []),
        ("費用は3000円。", "3000円の半額は1500円です。", []),
        ("It has 1,902 mm of rain.", "It has about 1,900 mm.", ["1,900 mm"]),
        ("人口は12340人。", "人口は約12000人です。", ["12000人"]),
        ("1.126 Betriebsstunden", "Es lief 1126 Stunden, nicht 1126 Tage.", ["1126 Tage"]),
        ("twice a year, for 3 kg", "2 times a year, not 3 times.", ["3 times"]),
        ("zweimal im Jahr, 3 kg", "2 mal im Jahr, nicht 3 mal.", ["3 mal"]),
        ("| Mo | 10–18 |", "Von 10 bis 18 Uhr, from 10 am to 6 pm, not to 7 pm.", ["7 pm"]),
        ("- 302 Kette, Artikelnummer 4711", "Artikel 302, Art. 4711, Artikel 4712", ["4712"]),
        ("9.1.2024 Meeting\n10:30 End", "See § 9, § 10 and § 9.1.", ["9", "10", "9.1"]),
        ("open 13–15 Uhr, for 12 rooms", "Von 12 bis 15 Uhr.", ["12"]),
        ("5 to 10 kg, 6 rooms", "6 to 10 kg", ["6"]),
        ("残高は5,612万4,800円。", "残高は5612万4800円、5612万4900円ではない。", ["5612万4900円"]),
        ("残高は15,050円。", "残高は1万5,050円。", []),
        ("EN 60335-1 and EN 60335-2-14", "DIN EN 60335-1, EN 60335-2-15", ["EN 60335-2-15"]),
        ("DE02 1203 0000 0000 2020 51", "DE02 1203 0000 0000 2020 15", ["DE02 1203 0000 0000 2020 15"]),
        ("DE02 1203 0000 0000 2020 51", "DE02120300000000202051", []),
        ("| Mm | Rain mm | °C |\n|---|---|---|\n| a | 115 | 3 |", "115 mm, 3 °C, 115 °C", ["115 °C"]),
        ("Montag bis Samstag, in Deutschland", "He said Monday or Saturday in Germany.", []),
        ("日本で月曜日に", "It is held in Japan.", []),
    ],
)
def test_a_figure_may_be_shared_but_not_converted_or_rounded(
    document: str, answer: str, wrong: list[str]
) -> None:
    assert marked(answer, document) == wrong


@pytest.mark.parametrize(
    ("document", "answer", "wrong"),
    [
        # Times of day without a colon, in a source that begins some with a zero.
        ("| Dock | 0548 | 1342 |", "It sails at 05:48, 5.48 am and 1:42 pm, not at 13:24.", ["13:24"]),
        ("Abfahrt 0933 und 2014", "Abfahrt um 9.33 Uhr und 20:14 Uhr, nicht um 21:14 Uhr.", ["21:14 Uhr"]),
        ("In 1342 a ferry sank.", "It sails at 13:42.", ["13:42"]),
        ("doors open at 07:05, 19:10", "They open at 0705 and 19.10.", []),
        ("Le bureau ferme à 18 h.", "Il ferme à 18h00, pas à 17h00.", ["17h00"]),
        ("It takes 6 hours.", "It opens at 18:00.", ["18:00"]),
        # At the end of a sentence.
        ("The ratio is 2.4, with 3.9 before.", "The ratio is 2.4. It was 3.9.", []),
        ("die Quote ist 2,4", "Das gilt ab 2.4. und nicht ab dem 3.4. für alle.", ["2.4", "3.4"]),
        # Dates that share their day or month.
        ("due on the first day of February, May and August", "Pay on 1 May and 1 August.", []),
        ("on 15 March and June 2021, since 2020", "15 June 2021, 15 June 2020", ["15 June 2020"]),
        ("due on 15 March, June and September", "Pay on 15 June, 15 September, 14 June.", ["14 June"]),
        ("zum 10. Mai, August und November", "Am 10. August, nicht am 11. November.", ["11. November"]),
        ("payable le 5 avril, juillet et octobre", "Le 5 juillet, le 6 octobre.", ["6 octobre"]),
        # From one date or time to another.
        ("sent 3 May 2024, paid 21 May 2024", "Sent on 3 May 2024 and paid on 21 May, 18 days later.", []),
        ("vom 1.2.2023 bis 31.7.2023", "Vom 1.2.2023 bis 31.7.2023 sind es 6 Monate.", []),
        ("8 June 2020 to 8 June 2025", "From 8 June 2020 to 8 June 2025, 5 years, not 4 years.", ["4 years"]),
        ("du 2 mars au 9 mars 2022", "Du 2 mars au 9 mars 2022, soit 8 jours, pas 11 jours.", ["11 jours"]),
        ("at 10:40 and 11:25", "From 10.40 to 11.25 it takes 45 minutes, not 40 minutes.", ["40 minutes"]),
        # What follows from a wrong figure is not wrong itself.
        ("a fee of $700", "$940 less the fee of $700 leaves $240, not $250.", ["$940", "$250"]),
        ("von 640 kg auf 160 kg", "Es fiel von 640 kg auf 150 kg, um 77 %.", ["150 kg"]),
        ("90 000 € et 7 000 €", "Reste : 90 000 − 21 500 − 7 000 = 61 500 €.", ["21 500"]),
        # What was computed stays so.
        ("$300 and $45", "It is 300 + 45 = $345.\n\nYou pay $345, not $354.", ["$354"]),
        # An earlier sentence gives no operands, although it ends with a figure.
        ("for €8.25 or €2.10", "It is €8.25. That is €6.15 more than €2.10.", ["€6.15"]),
        # No year is computed.
        ("opened in 2018 with 4 halls", "It has 4 halls since 2018, rebuilt in 2014.", ["2014"]),
        ("opened in 2018 for 4 years", "From 2018 for 4 years, i.e. to 2022.", []),
        # Phone numbers are one identifier.
        ("Tel. 0431 5550 17", "0431 5550 17, 0431 555017, 0431/555017", []),
        ("Tel. 0431 5550 17", "0431 5550 71", ["0431 5550 71"]),
        ("Tél. 0800 914 220", "Appelez le 0800 914 220, pas le 0800 914 202.", ["0800 914 202"]),
        ("open 0730-1945", "It is open 0730-1945, from 7.30 am to 7:45 pm, not 17:45.", ["17:45"]),
        ("Tel. +49 221 5550 92", "0221 5550 92, 0221 5550 29", ["0221 5550 29"]),
        ("Tel. 0664 555 01 93", "+43 664 5550193, +43 664 5550139", ["+43 664 5550139"]),
        # Units.
        ("| DNA | 40 ng |\n| Salt | 7 µl |", "40 ng, not 40 µg; 7 µL, not 7 µg.", ["40 µg", "7 µg"]),
        ("96 bytes and 4 MiB", "It leaks 96 B; 4 MiB, not 4 kg.", ["4 kg"]),
        ("Feuchte 5,1 CM-%, zulässig 2,0", "Zulässig sind 2,0 CM-%.", []),
        # Codes of digits and letters, and commands.
        ("from 7Q to 8R, for 8 kg", "Codes 7Q, 8R, 8S", ["8S"]),
        ("Run `kelp sync` once.", "Run `kelp sync`, then `kelp prune --all`.", ["kelp prune --all"]),
        # Counts.
        ("four doors, 5 years, 6 May", "It has 4 doors, five doors and 6 windows.", ["five", "6"]),
        ("vier Türen, 5 Jahre", "Es sind vier Fenster und fünf Türen.", ["fünf"]),
        ("quatre portes, 5 ans", "Il y a quatre portes et cinq fenêtres.", ["cinq"]),
        ("七枚、5年", "7枚と5枚です。", ["5"]),
        ("3 days, 12 persons", "After 3 full days, 12 guests.", []),
        ("gate 5 opens after 5 days", "Room 5 opens doors.", []),
        # Two names in a row.
        ("Ines Falk, Harbour Trust", "He met Ines Falck of Harbour Trust.", ["Ines Falck"]),
        ("der Betrag", "Der Betrag ist mit dem Haus zu zahlen. Nennen Sie ihn. Wählen Sie.", []),
        ("le prix", "Le prix est de la ville et du TTC, avec TVA.", []),
        # A cell has the unit that its table names: in the head, the row's first cell, or the caption.
        (
            "| Kind | Storage (months) | Jars |\n|---|---|---|\n| Pickle | 18 | 11 |",
            "Keep it for 18 months, or 11 months, or 18 days.", ["11 months", "18 days"],
        ),
        ("sku;pack;lead_days\nAN-1;50;7", "It takes 7 days, with 50 % off for 7 years.", ["50 %", "7 years"]),
        ("| | 2024 |\n|---|---|\n| Weight (kg) | 31 |\n| Staff | 17 |", "31 kg, 17 kg", ["17 kg"]),
        ("Weights in kg\n\n| Year | A |\n|---|---|\n| 2024 | 31 |", "It is 31 kg, not 31 m.", ["31 m"]),
        ("| Age | Doses per day |\n|---|---|\n| Adult | 4 |", "Take it for 4 days.", ["4 days"]),
        # Whole numbers with fractions.
        ("1½ hours, 2 3/4 cups", "1.5 h, 2¾ cups, not 2½ hours. Or 3/4 cup.", ["2½ hours", "3/4 cup"]),
        # The first number of a range of the document has its unit.
        ("boil 12–14 minutes", "Boil for 12 minutes, for twelve jars.", ["twelve"]),
        ("heat to 140 °C", "The show had 140 entries.", ["140"]),
        # A noun that counts people may be left out.
        ("otherwise five are enough", "It needs 5 people.", []),
        # Abbreviations with and without points.
        ("Made by Pharmel S.A., Lyon", "It is made by Pharmel SA, not by Pharmel AG.", ["Pharmel AG"]),
        # A month's name ends a sentence.
        ("3 packs, 38.75 EUR", "It ends in March. 3 packs at €38.75 are €116.25.", ["March"]),
        ("午前七時三十分", "七時半と19時30分", ["19時30分"]),
        ("List no. 2026/2", "See list 2026/2 or 2026/3 of 2026/3/1.", ["2026/3", "2026/3/1"]),
        ("the price is 12 EUR", "There are 18 items and three points.", ["18"]),
        # A result of two times in hours and minutes, and a date that is counted from another.
        ("from 9:15 to 12:00", "From 9:15 to 12:00 it takes 2 hours 45 minutes, not 3 hours.", ["3 hours"]),
        (
            "hearing on 4 February 2026, papers 14 days before",
            "Send them 14 days before 4 February 2026, on 21 January 2026, not on 20 January 2026.",
            ["20 January 2026"],
        ),
        # A price ends a sentence.
        ("6 jars for £24, she takes 10%", "They bring in £24. She takes 10% of that, or £2.40.", ["£2.40"]),
        # Cases of Russian names and months.
        ("Звоните: Ковалёва, 5 марта 2026 г.", "Письмо для Ковалёвой и Сергеева, март 2026.", ["Сергеева"]),
        ("3 дня, 450 руб.", "Это 3 дня и 450 рублей, не 3 часа и 450 кг.", ["3 часа", "450 кг"]),
        # A scale that a note or the sentence names once.
        (
            "Amounts in € million.\n\n| | Q3 |\n|---|---|\n| Revenue | 412.6 |",
            "Revenue was €412.6m, not €421.6m.", ["€421.6m"],
        ),
        ("we expect €1.62 to 1.65 billion (before: 1.60)", "€1.62bn and €1.6bn, not €1.6m.", ["€1.6m"]),
        # A unit that stands once: of a list, an interval, a comparison, or in a field's name.
        ("tries after 1, 5, 30 and 120 minutes", "After 5 minutes, not after 7 minutes.", ["7 minutes"]),
        ("−7.2 min (95% CI −10.1 to −4.3)", "From 4.3 to 10.1 min, not 10.1%.", ["10.1%"]),
        ("2.4 tonnes instead of 3.1", "It was 3.1 t, not 3.1 km.", ["3.1 km"]),
        (
            "| Field | Notes |\n|---|---|\n| `weight_g` | 1 to 31,500 |",
            "At most 31,500 g, not 31,500 kg.", ["31,500 kg"],
        ),
        ("`timeout_ms` is 250 by default", "It is 250 ms, not 250 s.", ["250 s"]),
        ("We had 490 in the plan, £575 now", "£490 was planned, not £409.", ["£409"]),
        # Numbers of rows have no unit.
        ("1    roof   90 Euro\n2    tiles  80 Euro\n3    work   60 Euro", "It takes 2 weeks.", ["2 weeks"]),
        # A loss.
        ("SOL fell by 3.1 min; costs of (34.5) kg", "−3.1 min and −34.5 kg, not −3.2 min.", ["−3.2 min"]),
        ("the prize is 31 kg of tea", "It is −31 kg.", ["−31 kg"]),
        # Times in words.
        ("at a quarter to seven, by noon", "At 6:45 am, by 12:00, not at 7:15.", ["7:15"]),
        ("gegen halb neun, um Viertel nach drei", "Um 8:30 Uhr und 15:15 Uhr, nicht 9:30 Uhr.", ["9:30 Uhr"]),
        ("après sept minutes, à huit heures et demie", "7 minutes, 8 h 30, pas 9 minutes.", ["9 minutes"]),
        ("on 17 Sep 2026: next call on the 24th", "On 24 September, not on 25 September.", ["25 September"]),
        # Equations with shares, in cells, and behind a label; lengths of time.
        ("rate 2 %, sum 13.50 EUR", "13.50 × 2 % = 0.27 EUR. 13.50 × 3 % = 0.42 EUR.", ["3 %", "0.42 EUR"]),
        ("4.50 EUR each, 12 of them", "| a | 12 × 4.50 EUR | 54 EUR |", []),
        ("à 0,50 € le kWh, 1 140 kWh en 2025", "En 2025 : 1 140 kWh × 0,50 € = 570 €, pas 580 €.", ["580 €"]),
        ("de 22h40 à 6h10", "De 22h40 à 6h10, soit 7 h 30, pas 8 h 30.", ["8 h 30"]),
        ("open all day", "It answers 24/7, 24 h/24.", []),
        # Names behind titles, and German phrases.
        ("Frau Amrein kommt", "Es kommt Herr Bolt, nicht Frau Amrein.", ["Bolt"]),
        ("| Who |\n|---|\n| Ms Ferreira |", "| Who |\n|---|\n| Call Ms Ferrera |", ["Ferrera"]),
        ("Bauleiter Thees Wilken", "Unter der Leitung von Thees Wilken, bei der Prüfung der Positionen.", []),
        # Addresses.
        ("Base: https://api.kelp.example/v3 and GET /parcels", "https://api.kelp.example/v3/parcels", []),
        ("Calls come from 203.0.113.16/28.", "Allow 203.0.113.16/24.", ["203.0.113.16/24"]),
        ("平日16:30に0555-01-3382かken@ao.example", "16:30に0555-01-3382かken@ao.exampleへ", []),
        ("wagon (no. 380 114)", "Wagon (no. 380 141)", ["380 141"]),
        # A part of a code or phone number, and a version, is no count.
        ("Tel. 0555 77 31 40, train 6K31, AB-2026-02", "For 40 pages, 6 chairs, 2 lists.", ["40", "6", "2"]),
        ("column 2.0 is used", "It has two columns.", ["two"]),
        ("| Bike | A |\n|---|---|\n| Battery (years) | 3 |", "Three of the six bikes fit.", ["Three", "six"]),
        # Figures of scripts without spaces have points for fractions.
        ("定員は8位まで、42.195 kmと38.7 km", "8,000人。42.195 − 38.7 = 3.495 km。", ["8,000人"]),
        ("AED 24台", "AED24台です。", []),
        # Lengths of time, and percentage points.
        ("記録は2時間17分42秒", "2:17:42、2:17:24ではない。", ["2:17:24"]),
        ("11.9% instead of 7.9%", "From 7.9% to 11.9%: 4 percentage points, not 5 pp.", ["5 pp"]),
        # Measures of something.
        ("urate below 6 mg in the sample", "Urate below 6 mg/dL.", ["6 mg"]),
        ("urate below 6 mg/dL", "Urate below 6 mg/dL, or 6 mg per dL.", []),
        ("I am 72 and well", "For a 72-year-old.", []),
        # Only German names have other endings.
        ("Reported by Halvard Moe", "Halvard Moe and Halvard Moen", ["Halvard Moen"]),
        ("Gemeldet von Halvard Moe", "Das ist Halvard Moes, nicht Halvard Moritz.", ["Halvard Moritz"]),
        ("借期30天，上午8点半", "30天，8点30分，不是30小时。", ["30小时"]),
    ],
)  # fmt: skip
def test_a_careful_reader_finds_it(document: str, answer: str, wrong: list[str]) -> None:
    assert marked(answer, document) == wrong


@pytest.mark.parametrize(
    ("language", "writes", "other"),
    [
        ("the rent is of the house and it is for this or that, as the law has it", "1,155", "1.155"),
        ("die Miete ist für das Haus und der Preis wird von dem Vermieter mit der Post", "1.155", "1,155"),
        ("le prix est pour la maison et les murs sont dans le jardin du voisin", "1.155", "1,155"),
    ],
)
def test_marks_of_thousands_are_those_of_the_documents_language(
    language: str, writes: str, other: str
) -> None:
    document = f"{language}: {writes} mm."
    assert marked(f"{language}: {writes} mm.", document) == []
    assert marked(f"{language}: {other} mm.", document) == [f"{other} mm"]


_GROWING = (
    '# 1. Notice of **Dr. Anna Keller**, <b class="x">Lindenhof</b>',
    "The rent is 1 200 euros, not EUR 1 300, in [the rules](https://lindenhof.example/rules) twelve hundred "
    "and fifty euros “until 1 March 2027, that is for 'two' years”, or `--rent 1250` from May 5, 2027 on",
    '| Item | from 令和 7年4月 | <br > 5.5 m³ | "a b" |',
    "- 実施:令和7年4月1日、残高:5612万4800円[規則](https://例え.jp/規則の文)を三十五分 twenty-\nfive cent",
    "See sections 4.2, 4.3 and 7 of ISO 9001-2: +49 89 123-4567, $-3.5 million, 3 to 17 November 2026, USA",
    "He read “the 'Anna Keller' rule and the 'World Health' rule once more” today",
)


@pytest.mark.sweep
@pytest.mark.parametrize("answer", _GROWING)
def test_a_growing_answer_has_the_facts_of_its_text(answer: str) -> None:
    """What is read again with the next token is all that it can change."""
    index = Index(RULES)
    index.build()
    sources = [Source("rules.md", RULES)]
    tracer = Tracer(sources, [index])
    for end in range(1, len(answer) + 1):
        tracer.extend(answer[end - 1 : end])
        assert tracer.origins == trace(answer[:end], sources, [index]), answer[:end]


def test_further_places_of_a_run_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.origins.runs._RARE_SHARE", 1)
    line = "the tenant shall water the magnolia twice a week\n"
    index = Index(line * 300)
    assert index.build()
    (run,) = trace(line, [Source("document", index.text)], [index]).runs
    assert 0 < len(run.others) <= 64

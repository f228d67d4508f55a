"""Facts hidden in prose that no word of the question points at: in another language, in other words.

What people do who have not read what they pasted. In `OTHER_WORDS` sentence and question have no word
in common but the commonest (a test sees to it), so whoever finds it has understood it; a scorer that
only compares words is blind there, and some of the question's words stand in the filler. Another
language is a task of the SpecPrefill paper. Sentences are our own; the numbers have four digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from core.bench import prose
from core.bench.quality.tasks.case import Case, Count, fill, scatter

# How it is told, how it is asked, and how the answer begins.
Fact = tuple[str, str, str]


def hidden(facts: Sequence[Fact]) -> Callable[[Random, int, Count], Case]:
    """One of `facts`, anywhere in prose."""

    def build(rng: Random, room: int, count: Count) -> Case:
        number, (told, question, lead) = str(rng.randint(1000, 9999)), rng.choice(facts)
        planted = told.format(number=number)
        parts = fill(prose.paragraphs(rng), room - count(planted), count)
        return Case(
            "\n\n".join(scatter(parts, [planted], [rng.uniform(0.1, 0.9)])),
            question,
            lead,
            (number,),
            f" {number}.",
        )

    return build


OTHER_LANGUAGE = (
    (
        "Das Schließfach von Frau Adler im Bahnhof hat die Nummer {number}.",
        "One sentence is in German. Which number does the locker of Frau Adler have?",
        "The locker of Frau Adler has the number",
    ),
    (
        "Le numéro de la chambre de Madame Fournier est le {number}.",
        "One sentence is in French. What is the number of the room of Madame Fournier?",
        "The number of the room of Madame Fournier is",
    ),
    (
        "El barco del señor Ortega tiene el número {number}.",
        "One sentence is in Spanish. Which number does the boat of señor Ortega have?",
        "The boat of señor Ortega has the number",
    ),
)

OTHER_WORDS = (
    (
        "Anybody who is ill may ring the physician on extension {number}.",
        "At which phone number can a sick person call the doctor?",
        "A sick person can call the doctor at the phone number",
    ),
    (
        "Admission to the gallery costs {number} crowns.",
        "How much money do visitors pay to see the paintings?",
        "To see the paintings visitors pay",
    ),
    (
        "Staff who resign give {number} days of notice.",
        "How long before they quit must workers tell their company?",
        "Workers who quit must tell their company as long before as",
    ),
    (
        "The vessel left the yard in {number} for its maiden voyage.",
        "When did the ship first sail?",
        "The ship first sailed in",
    ),
    (
        "All parcels are stored in depot {number}.",
        "Where do they keep the packages? Say the building's number.",
        "They keep the packages in building",
    ),
    (
        "The automobile burned {number} litres on that journey.",
        "How much petrol did the car need for the trip?",
        "For the trip the car needed",
    ),
    (
        "The lecture hall has {number} seats.",
        "How many people can listen to a talk at once?",
        "The number of people who can listen to a talk at once is",
    ),
    (
        "Guests reach the wireless network with the code {number}.",
        "Which password do visitors type to be online?",
        "To be online visitors type the password",
    ),
    (
        "The landlord raised the monthly rent to {number} crowns.",
        "What do the tenants owe for their flat now?",
        "For their flat the tenants now owe",
    ),
    (
        "The infant weighed {number} grams when it was born.",
        "How heavy was the baby at birth?",
        "At birth the baby was as heavy as",
    ),
)

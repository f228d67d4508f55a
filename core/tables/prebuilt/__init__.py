"""Tables built before the first answer: counted from texts and answers, shipped or built here."""

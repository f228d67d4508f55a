"""How a prompt is read: card, strip and map."""

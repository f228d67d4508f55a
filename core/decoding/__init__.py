"""The decode loop: draft, verify, accept, roll back; sampling, grammars and detokenisation."""

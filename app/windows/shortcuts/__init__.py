"""All keys on one sheet."""

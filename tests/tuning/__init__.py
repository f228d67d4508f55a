"""Scripts for Draftlight's developers: they fit constants and measure what only tunes the product."""

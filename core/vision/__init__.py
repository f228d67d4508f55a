"""Images as rows of a prompt: their sizes and ids, the towers that compute the rows, their positions.

A language model stays mlx-lm's: an image's rows take the place of embeddings (`input_embeddings`). Each
family of models that see has one module with a `Family`; `core.folders.eyes` lists them. Imported with the
first image.
"""

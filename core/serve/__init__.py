"""The local server: OpenAI's API over the worker's client, on the event loop that is there.

`http/` is how requests come in and answers go out, and who is let in; `answers/` is one answer after the
other: the queue, the gate to the worker, the record of each request; a folder for each API's shapes.
Nothing here imports MLX, NumPy or Qt. Every method is called on the loop.
"""

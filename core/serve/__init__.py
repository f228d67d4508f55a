"""The local server: the APIs of OpenAI and Anthropic over the worker's client, on the running event loop.

`server` has the sockets and routes, `queue` the order of answers, `answering` sends one answer, and each API
has a module with its requests and answers. Nothing here imports MLX, NumPy or Qt. Every method is called on
the loop.
"""

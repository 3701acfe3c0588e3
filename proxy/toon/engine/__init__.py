"""Serves one model to many requests at once: batches, keeps keys and values, samples, streams ids (docs/toon.md).

Read `engine` first, then `scheduler`, which decides, and `slots`, which keeps. Needs torch.
"""

"""The token-native route: the model that takes ids as they are, the engine that serves it, and clients (docs/toon.md).

Only `proxy.toon.model` and `proxy.toon.engine` need torch and transformers (the extra `toon`).
"""

"""aiohttp handlers: a client's request in, a response out, its leaving noticed. Nothing is decided here."""

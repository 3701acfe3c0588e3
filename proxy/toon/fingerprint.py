"""The hash of a tokenizer: what `toon.yaml` says of it, and what its files are, can be held against each other.

In: a folder. Out: 64 hexadecimal digits, the same as of the command

    cd FOLDER && sha256sum tokenizer.json tokenizer_config.json chat_template.jinja | sha256sum

(of those that are there, in this order). They decide which text is which ids, and how a conversation becomes a text.
Never: the weights, which may be trained on without a change to any id.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

TOKENIZER_FILE: Final = "tokenizer.json"
TOKENIZER_CONFIG: Final = "tokenizer_config.json"
TEMPLATE_FILE: Final = "chat_template.jinja"


def fingerprint(folder: Path) -> str:
    """Reads the files, some megabytes. Raises OSError; a folder without `tokenizer.json` is a FileNotFoundError."""
    lines = [_line(folder / TOKENIZER_FILE)]
    lines += [_line(folder / name) for name in (TOKENIZER_CONFIG, TEMPLATE_FILE) if (folder / name).is_file()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _line(file: Path) -> str:
    """As `sha256sum` writes it."""
    return f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"

"""Short texts in ten scripts, with emoji and code, to hold tokenizers against each other (`sluice toon compat`).

In: a folder, or none for the texts shipped here. Out: the texts, one per line of each `*.txt`, by script. Never: a line
that is empty, or one cut at anything but a line feed.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from proxy.errors import ConfigError


def shipped_dir() -> Path:
    """The folder of the texts shipped with the package."""
    return Path(str(files("proxy.toon.corpus")))


def read_corpus(folder: Path | None = None) -> dict[str, list[str]]:
    """By file name, in alphabetical order. Raises `ConfigError`."""
    place = shipped_dir() if folder is None else folder
    texts = {path.stem: _lines(path) for path in sorted(place.glob("*.txt"))}
    if not any(texts.values()):
        raise ConfigError(str(place), None, "there is no text here: a corpus is a folder of *.txt, one text per line")
    return texts


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(str(path), None, f"cannot be read as UTF-8 text: {problem}") from problem
    return [line for line in text.split("\n") if line]

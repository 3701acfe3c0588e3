"""A rule file's text as it stands on disk, and its next version put in its place (contracts R2, R3).

In: a path. Out: its text with its own line ends; later the new text, in one step: whoever reads, a watcher too, sees
the old version or the new one. Never: overwrites what somebody wrote meanwhile, or changes who may read the file.
"""

from __future__ import annotations

from pathlib import Path

from proxy.errors import RuleError
from proxy.stores.whole_file import write_whole


def read_rule_text(path: Path) -> str:
    """With its own line ends, unlike `Path.read_text`. Raises RuleError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RuleError(str(path), None, f"cannot be read: {error.strerror}") from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RuleError(str(path), raw[: error.start].count(b"\n") + 1, "is not UTF-8") from error


def write_rule_text(path: Path, before: str, after: str) -> None:
    """`before` is what was read and changed. Raises RuleError, and then has written nothing."""
    if read_rule_text(path) != before:
        raise RuleError(str(path), None, "was changed by somebody else meanwhile: nothing was written; do it again")
    try:
        write_whole(path, after.encode())
    except OSError as error:
        raise RuleError(str(path), None, f"cannot be written: {error.strerror}") from error

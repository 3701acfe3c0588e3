"""Rule files on disk: loading a folder, and noticing when it changes.

In goes a folder, out comes a `RuleSet` (`semantics.ruleset` does the reading of the texts). `FolderWatcher` calls back
with each new set, or with the fault that keeps a changed folder from being one; which set is in force is its caller's
to say, so a bad file never replaces a good set. Never writes. Contract clause R2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from watchfiles import awatch

from proxy.dialects.registry import VENDOR_DIALECTS
from proxy.errors import ConfigError, RuleError
from proxy.semantics.ruleset import RuleSet, parse_rule_files

_SUFFIXES = (".yaml", ".yml")
# Somebody who saves three files at once, or whose editor writes by rename, means one change.
_DEBOUNCE_MS = 150
_STEP_MS = 50
# Beside the kernel's notices the folder is looked at this often: notices do not come from network file systems, and not
# any more when the folder itself was replaced. A look is one stat per file.
_LOOK_MS = 500


def default_rules_dir() -> Path:
    """The set shipped with the package: data of the wheel, or `rules/` beside the package in a checkout."""
    package = Path(str(files("proxy")))
    shipped = package / "_rules"
    return shipped if shipped.is_dir() else package.parent / "rules"


def load_rules(folder: Path) -> RuleSet:
    """All rule files of `folder`. Raises RuleError, whose `file` begins with the folder as given."""
    try:
        return parse_rule_files(read_texts(folder), VENDOR_DIALECTS)
    except RuleError as error:
        file = error.file if error.file.startswith(str(folder)) else str(folder / error.file)
        raise RuleError(file, error.line, error.reason) from error


def _rule_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and not path.name.startswith("."))
    except OSError as error:
        raise RuleError(str(folder), None, f"the rules folder cannot be read: {error.strerror}") from error


def rule_file_of(folder: Path, rules: RuleSet, vendor: str) -> Path:
    """The vendor's own file. Raises RuleError if it has none by its name."""
    for name in (f"{vendor}.yaml", f"{vendor}.yml"):
        if name in rules.files:
            return folder / name
    raise RuleError(str(folder), None, f"there is no file {vendor}.yaml to be changed")


def rules_with(folder: Path, file: Path, text: str) -> RuleSet:
    """The rules of the folder as they would be with this text in `file`. Raises RuleError."""
    return parse_rule_files({**read_texts(folder), file.name: text}, VENDOR_DIALECTS)


def read_texts(folder: Path) -> dict[str, str]:
    """The rule files by name, unparsed. Raises RuleError for what cannot be read as text."""
    texts = {}
    for path in _rule_files(folder):
        try:
            texts[path.name] = path.read_text(encoding="utf-8")
        except OSError as error:
            raise RuleError(str(path), None, f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = path.read_bytes()[: error.start].count(b"\n") + 1
            raise RuleError(str(path), line, "is not UTF-8") from error
    return texts


_Signature = tuple[tuple[str, int, int, int], ...]


def _signature(folder: Path) -> _Signature | None:
    """What changes when a file is written, renamed over, added or removed; None while the folder cannot be read."""
    try:
        stats = [(path.name, path.stat()) for path in _rule_files(folder)]
    except (RuleError, OSError):
        return None
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)


class Versioned(Protocol):
    """A set read from a folder; equal texts, equal version."""

    @property
    def version(self) -> str: ...


Set = TypeVar("Set", bound=Versioned)


class FolderWatcher(Generic[Set]):
    """Follows one folder, read by `load`. `version` is that of the set in force when watching begins, so that an edit
    made between loading and watching is not missed; left out, the first look reports the set it finds."""

    def __init__(self, load: Callable[[Path], Set], version: str | None = None) -> None:
        self._load = load
        self._version = version
        self._refused: str | None = None
        self._looked_at: _Signature | None = None

    async def watch(
        self, folder: Path, on_change: Callable[[Set], None], on_refused: Callable[[ConfigError], None]
    ) -> None:
        """Runs until cancelled. `on_change` is called with each good set whose texts differ from the last good one's,
        `on_refused` once per fault; an edit that takes a fault back calls neither."""
        await self._look(folder, on_change, on_refused)
        while True:
            try:
                async for _ in awatch(
                    folder,
                    watch_filter=None,
                    debounce=_DEBOUNCE_MS,
                    step=_STEP_MS,
                    rust_timeout=_LOOK_MS,
                    yield_on_timeout=True,
                    recursive=False,
                ):
                    await self._look(folder, on_change, on_refused)
            except OSError:
                # The folder is gone or was never there: that was refused above; it may come back.
                await self._look(folder, on_change, on_refused)
            await asyncio.sleep(_LOOK_MS / 1000)

    async def _look(
        self, folder: Path, on_change: Callable[[Set], None], on_refused: Callable[[ConfigError], None]
    ) -> None:
        signature = await asyncio.to_thread(_signature, folder)
        if signature is not None and signature == self._looked_at:
            return
        try:
            found = await asyncio.to_thread(self._load, folder)
        except ConfigError as error:
            if str(error) != self._refused:
                self._refused = str(error)
                on_refused(error)
        else:
            self._refused = None
            if found.version != self._version:
                self._version = found.version
                on_change(found)
        # Kept only after the look, so that what was written while loading is looked at again.
        self._looked_at = signature

"""Where things lie on this host: paths relative to the configuration file, the rule files, the ledger's URL.

In: texts from the configuration and the folder it stands in. Out: absolute paths and URLs, or a `ValueError` whose text
says what is allowed. Never: create or open anything.
"""

from __future__ import annotations

import hashlib
import platform
import re
from pathlib import Path
from typing import Final

_SQLITE: Final = "sqlite:///"
_POSTGRESQL: Final = re.compile(r"postgresql(\+psycopg)?://[^/\s]*/[^/\s?]+(\?\S*)?")


def rule_names(rules_dir: Path | None) -> frozenset[str]:
    """The vendors a rule folder knows: its YAML files, without those (like `_default`) that stand for no vendor. None
    is the set shipped with the package."""
    if rules_dir is None:
        # imported late, for its libraries take longer to load than all the rest of the configuration
        from proxy.stores.rules import default_rules_dir

        rules_dir = default_rules_dir()
    files = (path for pattern in ("*.yaml", "*.yml") for path in rules_dir.glob(pattern))
    return frozenset(path.stem for path in files if not path.name.startswith(("_", ".")))


def ledger_url(url: str, folder: Path) -> str:
    """The ledger's URL with its path made absolute."""
    if _POSTGRESQL.fullmatch(url):
        return url
    if url.startswith(_SQLITE):
        place = url.removeprefix(_SQLITE)
        if not place or place == ":memory:" or "?" in place:
            raise ValueError("an SQLite ledger is sqlite:///FILE, a file and nothing after it")
        return f"{_SQLITE}{(folder / place).resolve()}"
    raise ValueError("a ledger is sqlite:///FILE or postgresql://user:password@host/database")


def journal_dir(url: str, given: str | None, folder: Path) -> Path:
    """Where the workers' journals lie: as given, else beside the SQLite file, else beside the configuration."""
    return (folder / given).resolve() if given is not None else _beside_ledger(url, folder, "journals")


def inbox_dir(url: str, folder: Path) -> Path:
    """Where answers that no rule knows are kept: beside the SQLite file, else beside the configuration."""
    return _beside_ledger(url, folder, "inbox")


def _beside_ledger(url: str, folder: Path, what: str) -> Path:
    if url.startswith(_SQLITE):
        database = Path(url.removeprefix(_SQLITE))
        return database.with_name(f"{database.name}-{what}")
    return folder.resolve() / f"ledger-{what}"


def instance_id(config: Path) -> str:
    """A name for this installation: the same after a restart, another one for another host or configuration file."""
    place = hashlib.sha256(str(config.resolve()).encode()).hexdigest()[:8]
    return f"{platform.node() or 'localhost'}-{place}"

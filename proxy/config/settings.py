"""What a configuration means once it is read: frozen values with every default filled in (contract C4).

In: nothing; `loading` fills them and `app` hands their parts down. Out: plain values that can be compared and printed.
Never: show a secret. What may hold one is left out of `repr`; `Secret` hides its text from every way of printing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from proxy.stores.journal import JOURNAL_BYTES

AuthMode = Literal["none", "keys"]
Boundary = Literal["scalar", "grapheme", "strict"]
JsonRepair = Literal["none", "fences"]
OnClientGone = Literal["cancel", "drain"]
Unsupported = Literal["refuse", "drop"]

DEFAULT_CREDENTIAL: Final = "default"
_MIB: Final = 1 << 20


class Secret:
    """A text that no `repr`, `str`, format or traceback shows; `reveal()` is the one door to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))


@dataclass(frozen=True, slots=True)
class Listen:
    host: str = "127.0.0.1"
    port: int = 8080


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A caller's static key: only the hash of it is known (lower-case hex)."""

    tenant: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Auth:
    mode: AuthMode
    keys: tuple[ClientKey, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """`url` is absolute and may hold a password; `journal_dir` is where each worker appends its journal, `inbox_dir`
    where answers that no rule knows are kept; `journal_bytes` is what may wait for the database, of each worker;
    `retention_days` is for `sluice ledger prune`, None keeps rows for good, `tenant_days` are exceptions from it."""

    url: str = field(repr=False)
    journal_dir: Path
    inbox_dir: Path
    journal_bytes: int = JOURNAL_BYTES
    retention_days: int | None = None
    tenant_days: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds; 0 switches one off."""

    connect: float = 5.0
    first_byte: float = 120.0
    stall: float = 60.0
    idle: float = 30.0
    total: float = 1800.0


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """One vendor account. `base_url` has no slash at its end and may carry a query; `api_key` is None where none is
    needed, and empty where its variable need not be set; `credential` is the key's name in the ledger, never the key;
    `headers` go with every request and may hold a secret; `unsupported` says what becomes of that part of a request
    which the vendor's grammar cannot express; `region` is for vendors whose requests are signed for one;
    `deadlines_said` names the deadlines that the file gives, for the others are the vendor's own to say."""

    name: str
    vendor: str
    base_url: str
    api_key: Secret | None = None
    credential: str = DEFAULT_CREDENTIAL
    dialect: str | None = None
    deadlines: Deadlines = Deadlines()
    deadlines_said: frozenset[str] = frozenset()
    after_finish_s: float = 2.0
    retries: int = 0
    on_client_gone: OnClientGone = "cancel"
    unsupported: Unsupported = "refuse"
    region: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """Where one model alias goes: an upstream's name and the vendor's own name of the model."""

    upstream: str
    model: str


@dataclass(frozen=True, slots=True)
class TextSettings:
    boundary: Boundary = "grapheme"
    hold_ms: int = 40


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Bytes. The request limit is contract Q1's; line and answer are W7's."""

    request_bytes: int = 10 * _MIB
    line_bytes: int = 8 * _MIB
    answer_bytes: int = 64 * _MIB


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a worker needs to start. `rules_dir` and `prices_dir` are None for the sets shipped with the package;
    `toon_registry` is the file of models that take token ids, None where there are none; `instance` names this
    installation in ledger rows and stays the same for one host and one configuration file."""

    listen: Listen
    auth: Auth
    ledger: LedgerSettings
    rules_dir: Path | None
    upstreams: Mapping[str, UpstreamSettings]
    models: Mapping[str, tuple[TargetSettings, ...]]
    instance: str
    text: TextSettings = TextSettings()
    keepalive_s: float = 0.0
    limits: LimitSettings = LimitSettings()
    json_repair: JsonRepair = "fences"
    shutdown_s: float = 30.0
    prices_dir: Path | None = None
    toon_registry: Path | None = None

"""The keys of a configuration file, as pydantic models (contract C4): which there are, of what kind, in what range.

In: plain values of a `Document`. Out: a `File`, or pydantic's errors, which `complaints` puts into words. A key that is
not built yet is accepted at its off value only. Never: look at the disk or the environment, or put a value into an
error.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationInfo

from proxy.config.settings import Deadlines, LimitSettings, Listen, TextSettings
from proxy.stores.journal import JOURNAL_BYTES

_LISTEN: Final = Listen()
_DEADLINES: Final = Deadlines()
_TEXT: Final = TextSettings()
_LIMITS: Final = LimitSettings()
_DAY_S: Final = 86_400
_GIB: Final = 1 << 30
# What belongs to the connection or to the body is the upstream session's to say, not the configuration's.
_NOT_OURS: Final = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect", "host"}
    | {"keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
_FIELD_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
#: The context for `File.model_validate` where keys may be empty, because nobody will use them.
WITHOUT_SECRETS: Final = "without secrets"
EMPTY_KEY: Final = "is empty: leave the key out where the upstream needs none"
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f]")


def _no_bool(value: object) -> object:
    # pydantic takes `yes` for 1; a person who wrote it did not mean that
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _base_url(url: str) -> str:
    if _SPACE.search(url):
        raise ValueError("must be a URL without white space")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it is what checks it)
    except ValueError:  # whose text may quote the URL
        raise ValueError("must be a URL with, if any, a port from 1 to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold credentials: they belong in api_key")
    if parts.fragment:
        raise ValueError("must not have a #fragment")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/")))


def _api_key(key: str, info: ValidationInfo) -> str:
    if not key and info.context is WITHOUT_SECRETS:
        return key
    if not key:
        raise ValueError(EMPTY_KEY)
    if _SPACE.search(key) or not key.isascii():
        raise ValueError("holds white space, a line end or a character that no header can carry")
    return key


def _sha256(digest: str) -> str:
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", digest):
        raise ValueError("must be the SHA-256 of the key: 64 hexadecimal digits")
    return digest.lower()


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _FIELD_NAME.fullmatch(name):
            raise ValueError("holds a name that is no HTTP header name")
        if name.lower() in _NOT_OURS:
            raise ValueError(f"must not set {name.lower()}: the proxy sets it")
        if _CONTROL.search(value):
            raise ValueError(f"{name} holds a control character")
    return {name.lower(): value for name, value in headers.items()}


def _label(name: str) -> str:
    if not name.strip() or len(name) > 128 or _CONTROL.search(name):
        raise ValueError("must be 1 to 128 characters, none of them a control character")
    return name


def _one_target(targets: list[Target]) -> list[Target]:
    if len(targets) != 1:
        raise ValueError("must be a list of exactly one target: failover between several is not built yet")
    return targets


def _off(value: bool) -> bool:
    if value:
        raise ValueError("is not built yet: false is the one value allowed")
    return value


def _no_retries(value: int) -> int:
    if value:
        raise ValueError("is not built yet: 0 is the one value allowed")
    return value


def _auth_mode(mode: object) -> object:
    if mode == "jwt":
        raise ValueError("jwt is not built yet: none or keys")
    return mode


def _repair(repair: object) -> object:
    if repair == "close":
        raise ValueError("close is not built yet: none or fences")
    return repair


Label = Annotated[str, AfterValidator(_label)]
Whole = Annotated[int, BeforeValidator(_no_bool)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=_DAY_S)]
Bytes = Annotated[Whole, Field(ge=1, le=_GIB)]
Port = Annotated[Whole, Field(ge=0, le=65535)]
Off = Annotated[bool, AfterValidator(_off)]
NonEmpty = Annotated[str, StringConstraints(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ListenSection(Section):
    host: NonEmpty = _LISTEN.host
    port: Port = _LISTEN.port


class KeyEntry(Section):
    tenant: Label
    sha256: Annotated[str, AfterValidator(_sha256)]


class AuthSection(Section):
    mode: Annotated[Literal["none", "keys"], BeforeValidator(_auth_mode)]
    keys: list[KeyEntry] = []


class RetentionSection(Section):
    """How many days rows are kept, for `sluice ledger prune`."""

    days: Annotated[Whole, Field(ge=1, le=36_500)] | None = None
    tenants: dict[Label, Annotated[Whole, Field(ge=1, le=36_500)]] = {}


class LedgerSection(Section):
    url: NonEmpty = "sqlite:///ledger.db"
    journal_dir: NonEmpty | None = None
    journal_bytes: Annotated[Whole, Field(ge=1 << 16, le=1 << 40)] = JOURNAL_BYTES
    retention: RetentionSection | None = None


class DeadlinesSection(Section):
    connect: Seconds = _DEADLINES.connect
    first_byte: Seconds = _DEADLINES.first_byte
    stall: Seconds = _DEADLINES.stall
    idle: Seconds = _DEADLINES.idle
    total: Seconds = _DEADLINES.total


class ContinuationSection(Section):
    on_cut: Off = False
    on_length: Off = False


class DefaultsSection(Section):
    """What may stand under `defaults:` and on each upstream alike."""

    deadlines: DeadlinesSection = DeadlinesSection()
    after_finish_s: Seconds = 2
    retries: Annotated[Whole, AfterValidator(_no_retries)] = 0
    on_client_gone: Literal["cancel", "drain"] = "cancel"
    continuation: ContinuationSection = ContinuationSection()
    unsupported: Literal["refuse", "drop"] = "refuse"


class UpstreamSection(DefaultsSection):
    vendor: NonEmpty
    base_url: Annotated[str, AfterValidator(_base_url)]
    api_key: Annotated[str, AfterValidator(_api_key)] | None = None
    credential: Label | None = None
    dialect: NonEmpty | None = None
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,40}$")] | None = None
    headers: Annotated[dict[str, str], AfterValidator(_headers)] = {}


class Target(Section):
    upstream: NonEmpty
    model: Label


class TextSection(Section):
    boundary: Literal["scalar", "grapheme", "strict"] = _TEXT.boundary
    hold_ms: Annotated[Whole, Field(ge=0, le=10_000)] = _TEXT.hold_ms


class LimitsSection(Section):
    request_bytes: Bytes = _LIMITS.request_bytes
    line_bytes: Bytes = _LIMITS.line_bytes
    answer_bytes: Bytes = _LIMITS.answer_bytes


class JsonSection(Section):
    repair: Annotated[Literal["none", "fences"], BeforeValidator(_repair)] = "fences"


class ToonSection(Section):
    """The models that take token ids (docs/toon.md): the file that says which there are."""

    registry: NonEmpty


class File(Section):
    """The whole file. `auth` has no default: a proxy is open because someone wrote so, not because a line was lost."""

    listen: ListenSection = ListenSection()
    auth: AuthSection
    ledger: LedgerSection = LedgerSection()
    rules: NonEmpty | None = None
    prices: NonEmpty | None = None
    defaults: DefaultsSection = DefaultsSection()
    upstreams: Annotated[dict[Label, UpstreamSection], Field(min_length=1)]
    models: Annotated[dict[Label, Annotated[list[Target], AfterValidator(_one_target)]], Field(min_length=1)]
    text: TextSection = TextSection()
    keepalive_s: Seconds = 0
    limits: LimitsSection = LimitsSection()
    # `json` is a method of pydantic's models, hence another name here
    json_: Annotated[JsonSection, Field(alias="json")] = JsonSection()
    shutdown_s: Seconds = 30
    toon: ToonSection | None = None

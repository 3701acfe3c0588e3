"""The operator's configuration (contract C4): a YAML file and the environment in, one frozen `Settings` out.

In: the path of a configuration file and the environment its `${VAR}`s are taken from. Out: `Settings`, complete:
relative paths resolved, `defaults:` merged into every upstream, vendor names checked against the rule files. Whatever
is wrong is a `ConfigError` with file, line, key and the nearest valid name. Never: print a value (it may be a secret),
open a socket or a database, read a rule file's content. `app` and `cli` alone read this package.
"""

from proxy.config.loading import load_config
from proxy.config.settings import (
    Auth,
    ClientKey,
    Deadlines,
    LedgerSettings,
    LimitSettings,
    Listen,
    Secret,
    Settings,
    TargetSettings,
    TextSettings,
    UpstreamSettings,
)

__all__ = [
    "Auth",
    "ClientKey",
    "Deadlines",
    "LedgerSettings",
    "LimitSettings",
    "Listen",
    "Secret",
    "Settings",
    "TargetSettings",
    "TextSettings",
    "UpstreamSettings",
    "load_config",
]

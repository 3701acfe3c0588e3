"""The command `sluice` and its subcommands, one module each (contract C1-C3).

In: arguments. Out: the subcommand's exit code. Never: import a subcommand before it is called, so that `sluice ledger
export` does not wait for the tokenizer and the HTTP server to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

import click

import proxy


class Lazy(NamedTuple):
    """Where a subcommand is, and what it is for (shown by `sluice --help` without importing it)."""

    module: str
    attribute: str
    about: str


COMMANDS: Final = {
    "serve": Lazy("proxy.cli.serve", "serve", "Run the proxy in the foreground."),
    "replay": Lazy("proxy.cli.replay", "replay", "Serve recordings as an upstream, or trace what is made of one."),
    "probe": Lazy("proxy.cli.probe", "probe", "Ask a live vendor, and learn its rules from what it says."),
    "check-rules": Lazy("proxy.cli.check_rules", "check_rules", "Replay every recording against the rules."),
    "learn": Lazy("proxy.cli.learn", "learn", "Turn answers that no rule knows into rules."),
    "ledger": Lazy("proxy.cli.ledger", "ledger", "Look into the ledger, export it, price it again, prune it."),
    "report": Lazy("proxy.cli.report", "report", "What was used and what it costs, by our count and the vendor's."),
    "reconcile": Lazy("proxy.cli.reconcile", "reconcile", "Hold a vendor's invoice against the ledger."),
    "toon": Lazy("proxy.cli.toon", "toon", "Serve local models that take token ids, and compare their tokenizers."),
    "check-prices": Lazy("proxy.cli.prices", "check_prices", "Are the price files right, and is every model priced?"),
}


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (lazy := COMMANDS.get(cmd_name)) is None:
            return None
        command = getattr(import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command), lazy
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.about) for name, lazy in COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(proxy.__version__, prog_name="sluice")
def sluice() -> None:
    """A streaming proxy between applications and LLM vendors."""

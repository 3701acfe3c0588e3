"""From the command line to a command (contract C3).

In: the process's arguments. Out: its exit code: 0 = done, 1 = done and something is wrong, 2 = could not be done, with
one line on standard error that says why. Never: show a traceback for what a person can mend.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from proxy.cli import sluice
from proxy.errors import SluiceError

CANNOT = 2
_INTERRUPTED = 130


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code. A command returns its own code, or None for 0."""
    try:
        code: object = sluice.main(arguments, prog_name="sluice", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return CANNOT
    except SluiceError as problem:
        click.echo(f"sluice: {problem}", err=True)
        return CANNOT
    except click.Abort:
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()

"""`sluice toon`: the models that take token ids: serve them, compare their tokenizers, take one in (contracts C1, C3).

In: `toon.yaml` (docs/toon.md). Out: of `serve` the line `listening on http://H:P` on standard error once the models are
warm, and 0 after SIGTERM; of `compat` what moved between versions, and 1 where one breaks its promise; of `adopt` the
changed files. Each exits 2, with file, line and reason, where it cannot be done. Never: imports torch for what needs
none.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click
import orjson

from proxy.cli.listening import bind, url_of
from proxy.cli.toon_adopt import adopt_model
from proxy.errors import SluiceError
from proxy.toon.corpus import read_corpus
from proxy.toon.registry import load_registry

#: What the extra brings, by the names under which it is imported.
_MODEL: Final = ("torch", "transformers", "llguidance", "tokenizers", "jinja2")
_WORDS: Final = ("tokenizers", "jinja2")

registry_option = click.option(
    "--registry",
    type=click.Path(path_type=Path),
    default="toon.yaml",
    show_default=True,
    help="Which models there are.",
)


@click.group("toon")
def toon() -> None:
    """Serve models that take token ids, and look after their tokenizers."""


@toon.command("serve")
@registry_option
@click.option("--host", help="Instead of the registry's listen.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of listen.port; 0 takes any free one.")
def serve(registry: Path, host: str | None, port: int | None) -> int:
    """Serve the registry's models in the foreground."""
    loaded = load_registry(registry)
    _need(_MODEL)
    listen = loaded.listen
    sock = bind(listen.host if host is None else host, listen.port if port is None else port)
    # imported late: a wrong registry or a taken port is told before torch is loaded, which takes seconds
    from proxy.toon.service import serve as run

    return run(loaded, sock, lambda: click.echo(f"listening on {url_of(sock)}", err=True))


@toon.command("compat")
@registry_option
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="A folder of *.txt, a text per line. Default: ten scripts."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compat(registry: Path, corpus: Path | None, as_json: bool) -> int:
    """Which texts and ids moved between the versions of a tokenizer?"""
    loaded = load_registry(registry)
    _need(_WORDS)
    from proxy.cli.toon_show import pair_as_json, pair_in_words
    from proxy.toon.compat import compare_versions

    texts = read_corpus(corpus)
    pairs = compare_versions(loaded.tokenizers, texts)
    if as_json:
        told = {
            "corpus": {script: len(lines) for script, lines in texts.items()},
            "versions": sorted(loaded.tokenizers),
            "pairs": [pair_as_json(pair) for pair in pairs],
        }
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    elif not pairs:
        click.echo(f"{', '.join(loaded.tokenizers)} is the only version: there is nothing to compare")
    else:
        click.echo("\n".join(line for pair in pairs for line in pair_in_words(pair)))
    return 1 if any(pair.is_broken for pair in pairs) else 0


@toon.command("adopt")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--version", required=True, help="Of the tokenizer that the model was made for, such as 2.1.")
@click.option("--name", help="The model's, in the registry. Default: the folder's.")
@registry_option
def adopt(folder: Path, version: str, name: str | None, registry: Path) -> int:
    """Write down which version of a tokenizer a model was made for."""
    for line in adopt_model(folder, version, registry, name):
        click.echo(line)
    return 0


class NeedsExtra(SluiceError):
    """The model libraries are not installed."""


def _need(modules: tuple[str, ...]) -> None:
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise NeedsExtra(
            f"{', '.join(missing)} is not installed: install sluice-proxy[toon], the extra for local models"
        )

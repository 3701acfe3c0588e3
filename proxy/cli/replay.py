"""`sluice replay PATH...`: recordings served as an upstream, or traced (contract C2).

In: recording files, or folders of them, or a seed of the difficult vendor. Out: a server in the foreground, its address
on standard error, exit code 0 after SIGTERM or SIGINT (what is being played is dropped); with `--trace`, what each
stage made of each read, on standard output. A file that is no recording is told with its place, and nothing is served
(exit code 2).
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import uvloop

from proxy.cli.listening import bind, url_of
from proxy.cli.trace import trace_recording, trace_steps
from proxy.cli.trace_stages import Stages
from proxy.config import load_config
from proxy.semantics.ruleset import RuleSet
from proxy.stores.difficult import KEY, MODELS, DifficultServer, DifficultVendor
from proxy.stores.recordings import Recording, RecordingError, find_recordings
from proxy.stores.rules import default_rules_dir, load_rules
from proxy.stores.simulator import Simulator

#: Beside the proxy's own 8080.
DEFAULT_PORT = 8081


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH...]")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 takes any free one."
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="1 as recorded, 2 twice as fast, 0 as fast as possible.",
)
@click.option(
    "--difficult",
    "seed",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Serve no recordings but a vendor with hidden error habits, drawn from this seed.",
)
@click.option("--trace", is_flag=True, help="Serve nothing; print what each stage made of each read.")
@click.option("--json", "as_json", is_flag=True, help="Print for a program: one JSON object per line.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Trace by the rules folder that this configuration names.",
)
def replay(
    paths: Sequence[Path],
    host: str,
    port: int,
    speed: float,
    seed: int | None,
    trace: bool,
    as_json: bool,
    config_file: Path | None,
) -> int:
    """Serve recordings as an upstream, or trace what is made of one."""
    if bool(paths) is (seed is not None) or (trace and seed is not None):
        raise click.UsageError("give either recordings, as PATH..., or --difficult SEED, which has nothing to trace")
    recordings = find_recordings(paths)
    if not recordings and seed is None:
        raise RecordingError(str(paths[0]), None, "holds no recording (a file that ends in .jsonl)")
    if trace:
        folder = load_config(config_file).rules_dir if config_file is not None else None
        return print_trace(recordings, load_rules(folder or default_rules_dir()), as_json)
    simulator = Simulator(recordings, speed) if seed is None else DifficultServer(DifficultVendor(seed), speed)
    with bind(host, port) as sock, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_recordings(simulator, sock, as_json))
    return 0


def print_trace(recordings: Sequence[Recording], rules: RuleSet, as_json: bool) -> int:
    for number, recording in enumerate(recordings):
        observe = Stages(recording, rules)
        if as_json:
            for step in trace_steps(recording, observe):
                click.echo(json.dumps({"recording": recording.key, **asdict(step)}, ensure_ascii=False))
            continue
        if number:
            click.echo()
        for line in trace_recording(recording, observe):
            click.echo(line)
    return 0


async def serve_recordings(simulator: Simulator, sock: socket.socket, as_json: bool) -> None:
    """Until a signal says to stop."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    await simulator.start(sock=sock)
    url = url_of(sock)
    click.echo(f"{_told(simulator)} on {url}", err=True)
    if as_json:
        keys = [recording.key for recording in simulator.recordings]
        click.echo(json.dumps({"url": url, "speed": simulator.speed, "recordings": keys}))
    await stopping.wait()
    await simulator.stop()


def _told(simulator: Simulator) -> str:
    if isinstance(simulator, DifficultServer):
        return f"the difficult vendor {simulator.vendor.seed} (key {KEY}, model {MODELS[0]}) answers"
    count = len(simulator.recordings)
    return f"replaying {count} recording{'s' if count > 1 else ''}"

"""`sluice serve`: the proxy in the foreground (contract C1).

In: a configuration file and what of it the command line overrides. Out: the line `listening on http://H:P` on standard
error once every worker is ready, and exit code 0 after SIGTERM or SIGINT. Never: print anything to standard output.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from proxy.cli.ledger_place import make_ready
from proxy.cli.listening import bind, url_of
from proxy.cli.metrics_folder import fresh_metrics_folder
from proxy.cli.supervisor import Supervisor
from proxy.config import Listen, Settings, load_config

MOST_WORKERS = 256


@click.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), default="sluice.yaml", show_default=True)
@click.option("--host", help="Instead of the configuration's listen.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of listen.port; 0 takes any free one.")
@click.option("--workers", type=click.IntRange(1, MOST_WORKERS), default=1, show_default=True, help="Processes.")
def serve(config_file: Path, host: str | None, port: int | None, workers: int) -> int:
    """Run the proxy in the foreground."""
    settings = load_config(config_file)
    listen = Listen(settings.listen.host if host is None else host, settings.listen.port if port is None else port)
    settings = replace(settings, listen=listen)
    make_ready(settings.ledger, str(config_file))
    return serve_alone(settings) if workers == 1 else serve_with_workers(settings, workers)


def announce(url: str) -> None:
    click.echo(f"listening on {url}", err=True)


def serve_alone(settings: Settings) -> int:
    """One worker, in this very process."""
    sock = bind(settings.listen.host, settings.listen.port)
    # imported late: a wrong configuration or a taken port is told before the tokenizer is loaded
    from proxy.app import run_worker

    return run_worker(
        settings,
        sock=sock,
        worker=0,
        on_ready=lambda: announce(url_of(sock)),
        parent_alive_fd=None,
        metrics_dir=None,
    )


def serve_with_workers(settings: Settings, workers: int) -> int:
    """Several workers on one port, in processes forked from this one."""
    reserved = bind(settings.listen.host, settings.listen.port, shared=True)
    with fresh_metrics_folder() as metrics_dir:
        # Read by prometheus-client when it is first imported, and never again.
        assert "prometheus_client" not in sys.modules
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics_dir)
        # numpy's linear algebra, which nothing here uses, would start threads, and a process with threads cannot fork.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from prometheus_client.multiprocess import mark_process_dead

        from proxy.app import preload, run_worker

        preload()
        supervisor = Supervisor(
            settings,
            run_worker,
            reserved=reserved,
            workers=workers,
            metrics_dir=metrics_dir,
            on_death=lambda pid: mark_process_dead(pid, str(metrics_dir)),  # type: ignore[no-untyped-call]
        )
        return supervisor.run(on_ready=lambda: announce(url_of(reserved)))

"""What holds for every test: options, hypothesis profiles, the event loop, and what a test may need of the machine.

`clause("W2")` marks name the contract's clauses; `needs("postgresql")` marks (see `tests/support/needs.py`) skip what
the machine lacks. Warnings are errors and no test takes longer than a minute: both stand in pyproject.toml.
Several processes may test at once (`make test`): whatever a test makes outside `tmp_path` has a name of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import uvloop
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

from tests.support.needs import require

# Before torch is loaded, here or in a process that a test starts: several processes test at once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_INTEGRATION: Final = Path(__file__).parent / "integration"

#: Where the event loop may block for a moment, and why. (function, file, functions in it)
_MAY_BLOCK: Final = (
    # The open row is written, not synced, before the request leaves: it goes to the page cache in microseconds, and a
    # thread hop would cost more (design, "The ledger's write path").
    ("os.write", "proxy/stores/journal.py", {"open"}),
    # An error that nobody expected is logged with its traceback, and a traceback reads source files.
    ("os.stat", "proxy/server/handlers.py", {"_guard"}),
    ("io.TextIOWrapper.read", "proxy/server/handlers.py", {"_guard"}),
    ("io.BufferedReader.read", "proxy/server/handlers.py", {"_guard"}),
)

# `fast` is what a person waits for; `deep` is for scripts/deep. No deadline: a busy machine is no bug.
settings.register_profile("fast", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("SLUICE_HYPOTHESIS", "fast"))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sluice")
    group.addoption("--update-golden", action="store_true", help="rewrite tests/golden; review the diff like code")
    group.addoption("--live", action="store_true", help="also run the tests that talk to a real vendor")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(name): skipped if the machine lacks it; tests/support/needs.py")
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden is refused in CI: goldens are reviewed where they are made")


def pytest_collection_finish() -> None:
    """What is collected, tens of thousands of tests, stays to the end: the collector of garbage need not look through
    it again and again."""
    gc.collect()
    gc.freeze()


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that production runs on."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require(mark.args[0])
    if item.get_closest_marker("live") and not item.config.getoption("--live"):
        pytest.skip("talks to a real vendor: run with --live")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True)
def no_blocking_of_the_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """In integration tests, a blocking call by the program on the event loop is an error."""
    if _INTEGRATION not in request.path.parents:
        yield
        return
    with blockbuster_ctx("proxy") as detector:
        for function, file, names in _MAY_BLOCK:
            detector.functions[function].can_block_in(file, names)
        yield

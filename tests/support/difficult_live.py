"""The difficult vendor learned over HTTP, as an operator would: served, probed, met in production, learned.

In: a seed and a folder. Out: the rules folder after `sluice probe … --write`, a proxy's traffic, and what a person does
with `sluice learn` who knows what the example of each group means. The vendor, the probe and the proxy are processes of
their own, as people run them. Nothing but the shown half is ever served.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proxy.learning.drafting import CODES
from proxy.learning.learning import Group, Learner
from proxy.stores.difficult import KEY, RATE_LIMIT, Cause, DifficultVendor
from proxy.stores.difficult_answers import VENDOR
from proxy.stores.inbox_folder import read_inbox
from proxy.stores.recordings import Recording, find_recordings
from proxy.stores.rules import load_rules
from tests.support.commands import Done, sluice
from tests.support.difficult import BARE_FILE, FILE, MET, TODAY, Agreement, judged
from tests.support.proxy import ROOT, chat, served_proxy, write_config

#: Just beyond what the vendor takes for a prompt.
_LONG_TOKENS: Final = 4000


@dataclass(frozen=True, slots=True)
class Learned:
    """One vendor after all that an operator does. `probed` and `probed_again` are the two probes, `between` the rule
    file's text after each, and `kept` the recordings of the first."""

    folder: Path
    vendor: DifficultVendor
    probed: Done
    probed_again: Done
    between: tuple[str, str]
    kept: list[Recording]

    @property
    def agreement(self) -> Agreement:
        """Of the rules as they lie there with the hidden table."""
        return judged(self.vendor, load_rules(self.folder / "rules"))


def learn_live(folder: Path, seed: int, *, accept: bool = False) -> Learned:
    """Probe twice, meet the vendor in production, learn."""
    vendor, file = DifficultVendor(seed), folder / "rules" / FILE
    with served_difficult(folder, seed) as base_url:
        config = configure(folder, base_url)
        probed = probe(folder, config, "--write")
        assert probed.code in (0, 1), probed.err
        first, kept = file.read_text(), find_recordings([folder / "recordings"])
        probed_again = probe(folder, config, "--write")
        second = file.read_text()
        asyncio.run(meet(folder, base_url))
        learn(folder, config, vendor, accept=accept)
    return Learned(folder, vendor, probed, probed_again, (first, second), kept)


@contextmanager
def served_difficult(folder: Path, seed: int) -> Iterator[str]:
    """`sluice replay --difficult SEED`; its base URL."""
    command = [sys.executable, "-m", "proxy", "replay", "--difficult", str(seed), "--port", "0", "--speed", "0"]
    with subprocess.Popen([*command, "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield f"{told['url']}/v1"
        finally:
            process.terminate()


def settings() -> dict[str, Any]:
    """For `write_config`: a model for each cause, which brings it about."""
    causes = {f"fine:{cause}": [{"upstream": "main", "model": f"fine:{cause}"}] for cause in Cause}
    models = {"fine": [{"upstream": "main", "model": "fine"}], **causes}
    return {"vendor": VENDOR, "upstream": {"api_key": KEY}, "rules": "rules", "models": models}


def configure(folder: Path, base_url: str) -> Path:
    """A configuration, and a rules folder that knows no more of the vendor than its family."""
    rules = folder / "rules"
    rules.mkdir()
    for file in (ROOT / "rules").glob("_*.yaml"):
        shutil.copy(file, rules)
    (rules / FILE).write_text(BARE_FILE)
    return write_config(folder, base_url, **settings())


def probe(folder: Path, config: Path, *words: str) -> Done:
    """Everything that may be asked."""
    allowed = ["--allow-moderation", "--allow-burst", str(RATE_LIMIT * 2), "--long-tokens", str(_LONG_TOKENS)]
    return sluice(folder, "probe", "main", "--config", str(config), "--yes", "--pause", "0", "--json", *allowed, *words)


async def meet(folder: Path, base_url: str) -> None:
    """Production: a proxy before the vendor gets each cause a few times."""
    async with served_proxy(folder, base_url, **settings()) as proxy:
        for cause in Cause:
            for number in range(MET):
                await proxy.ask(chat("سلام", stream=number % 2 == 0, model=f"fine:{cause}"))
        await proxy.rows(len(Cause) * MET)


def learn(folder: Path, config: Path, vendor: DifficultVendor, *, accept: bool = False) -> None:
    """A person goes through the groups and names the class of each; with `accept` the command does what it is sure of
    first."""
    if accept:
        done = sluice(folder, "learn", "--config", str(config), "--accept", "--json")
        assert done.code in (0, 1), done.err
    inbox = folder / "ledger.db-inbox"
    learner = Learner(folder / "rules", folder / "recordings", TODAY)
    groups = learner.survey(read_inbox(inbox)).groups
    for number, given in enumerate(groups):
        if (group := learner.still_open(given)) is None:
            continue
        error_class = cause_of(vendor, group).error_class
        lesson = learner.propose(group, error_class, CODES[error_class], [*groups[:number], *groups[number + 1 :]])
        if lesson.is_sound:
            learner.write(lesson)


def cause_of(vendor: DifficultVendor, group: Group) -> Cause:
    """What the group's example means, by the hidden table: a person would ask the vendor."""
    recording = group.pending[0].kept.recording
    told = "\n".join([recording.body.decode(), *(value for _, value in recording.headers)])
    for cause, habit in vendor.habits.table.items():
        if re.search(rf"(?<!\w){re.escape(habit.mark_text)}(?!\w)", told):
            return cause
    raise AssertionError(f"no cause has the marks of {told}")

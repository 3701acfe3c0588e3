"""A project in miniature for what learns from production: one vendor with one rule, its evidence, and an inbox."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from proxy.canon.verdict import Observation, Phase
from proxy.stores.inbox import Inbox
from proxy.stores.inbox_folder import Kept, read_inbox
from proxy.stores.recordings import Read, Recording, dump_recording

NOON = 1_795_996_800.0
JSON = "application/json"
DEFAULT = "fallback:\n  - {status: any, class: model_unavailable}\n"
PLACE = "recordings/{vendor}/errors/quota.jsonl"
RULES = """\
# Written by hand.
vendor: {vendor}
rules:
  # The day's quota; سهمیه‌ی روز.
  - id: {vendor}.quota
    when: {{json: {{$code: E17}}}}
    then: {{class: rate_limited, code: daily_limit_reached}}
    evidence: recordings/{vendor}/errors/quota.jsonl
    seen: 2026-11-30
    proof: simulated
"""
#: What the one rule knows, and what says nearly the same under a code that it does not know.
KNOWN = {"error": {"code": "E17", "message": "سهمیه‌ی روزانه‌ی شما تمام شده است، فردا دوباره امتحان کنید"}}
ALIKE = {"error": {"code": "E18", "message": "سهمیه‌ی ماهانه‌ی شما تمام شده است، فردا دوباره امتحان کنید"}}
#: Like nothing that anybody knows.
STRANGE = {"error": {"code": "Q-7", "message": "चाँद आज छिपा हुआ है"}}


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with `rules/`, `recordings/` and `inbox/`."""

    folder: Path
    vendor: str

    @property
    def rules(self) -> Path:
        return self.folder / "rules"

    @property
    def rule_file(self) -> Path:
        return self.rules / f"{self.vendor}.yaml"

    @property
    def recordings(self) -> Path:
        return self.folder / "recordings"

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    def keep(self, body: object, times: int = 1, status: int = 418) -> None:
        """The vendor says this so many times in production."""
        inbox = Inbox(self.inbox, [])
        raw = json.dumps(body, ensure_ascii=False).encode()
        for number in range(times):
            seen = Observation(self.vendor, Phase.HEAD, status, {"content-type": JSON}, raw)
            inbox.keep(seen, upstream="main", trace_id="t", at=NOON + number)
        inbox.close()

    def kept(self) -> list[Kept]:
        return read_inbox(self.inbox)

    def texts(self) -> dict[str, bytes]:
        """Every file of the project, for comparing before and after."""
        files = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in files}


def make_project(folder: Path, vendor: str = "acme") -> Project:
    project = Project(folder, vendor)
    project.rules.mkdir(parents=True)
    (project.rules / "_default.yaml").write_text(DEFAULT)
    project.rule_file.write_text(RULES.format(vendor=vendor))
    record(project, "quota", KNOWN, "rate_limited", "daily_limit_reached")
    return project


def record(project: Project, name: str, body: object, error_class: str, code: str) -> None:
    """An answer whose meaning is known."""
    path = project.recordings / project.vendor / "errors" / f"{name}.jsonl"
    dump_recording(
        Recording(
            path=path,
            vendor=project.vendor,
            name=f"errors/{name}",
            obtained="simulated",
            odd="a refusal",
            request={"method": "POST", "path": "/chat/completions"},
            status=418,
            headers=(("content-type", JSON),),
            end="close",
            reads=(Read(0.0, json.dumps(body, ensure_ascii=False).encode()),),
            expect={"class": [error_class], "code": code},
            at="2026-11-30",
        ),
        path,
    )

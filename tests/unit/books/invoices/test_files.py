"""Files as operators have them: packed, in other encodings, hostile, or not what they should be (contract C3)."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.books.invoices import files as files_module
from proxy.books.invoices import read_invoice, read_invoices
from proxy.errors import InvoiceError
from tests.support.invoices import SAMPLES, Sums, sums

pytestmark = pytest.mark.clause("C3")

AMOUNT = SAMPLES / "deepseek-amount.csv"
ROUTER = SAMPLES / "openrouter.csv"


def read(path: Path, vendor: str = "deepseek") -> Sums:
    return sums(read_invoice(path, vendor))


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def semicolons(data: bytes) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows(csv.reader(io.StringIO(data.decode())))
    return out.getvalue().encode()


WRITTEN: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzipped,
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "utf-16 of a spreadsheet": lambda data: data.decode().replace(",", "\t").encode("utf-16"),
    "utf-16 without a mark": lambda data: data.decode().encode("utf-16-le"),
    "semicolons": semicolons,
    "lines of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "lines of old Macs": lambda data: data.replace(b"\n", b"\r"),
    "no last line end": lambda data: data.rstrip(b"\n"),
    "empty rows": lambda data: data.replace(b"\n", b"\n,,,,,,,\n\n"),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_a_table_reads_the_same_however_it_was_saved(way: str, tmp_path: Path) -> None:
    """Spreadsheets, browsers and systems differ; the figures do not."""
    path = tmp_path / "amount"
    path.write_bytes(WRITTEN[way](AMOUNT.read_bytes()))
    assert read(path) == read(AMOUNT)


def test_a_zip_is_its_files(tmp_path: Path) -> None:
    """As the platform gives it; what a desktop adds to a zip is passed over."""
    path = tmp_path / "usage.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("export/amount-2026-10.csv", AMOUNT.read_bytes())
        archive.writestr("export/cost-2026-10.csv", (SAMPLES / "deepseek-cost.csv").read_bytes())
        archive.writestr("__MACOSX/export/._amount-2026-10.csv", b"\x00\x05\x16\x07")
    invoice = read_invoice(path, "deepseek")
    assert invoice.form == "deepseek-amount and deepseek-cost"
    lines = list(invoice.lines)
    assert len(lines) == 9
    assert lines[0].place == "usage.zip/export/amount-2026-10.csv:2"


def test_json_may_be_packed_and_marked_too(tmp_path: Path) -> None:
    """The same for pages of an API."""
    data = (SAMPLES / "openai-usage.json").read_bytes()
    for name, written in {"a": gzipped(data), "b": b"\xef\xbb\xbf" + data, "c": data.decode().encode("utf-16")}.items():
        (tmp_path / name).write_bytes(written)
        assert read(tmp_path / name, "openai") == read(SAMPLES / "openai-usage.json", "openai")


def workbook() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return out.getvalue()


def zipped_without_files() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w"):
        pass
    return out.getvalue()


WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "a login page": (b"<!DOCTYPE html><title>Sign in</title>", "is a page of HTML, perhaps of a login"),
    "a workbook": (workbook(), r"is a workbook .* save it as CSV"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "is no text, perhaps an old workbook"),
    "a PDF": (b"%PDF-1.7 ...", "is a PDF"),
    "Parquet": (b"PAR1\x15\x04", "is Parquet"),
    "a cut gzip": (gzipped(AMOUNT.read_bytes())[:60], "cannot be read"),
    "a cut zip": (workbook()[:40], "is a broken zip file"),
    "other columns": (
        b"name,price\na,1\n",
        "is no export that is known here; its columns are name, price. For deepseek",
    ),
    "other JSON": (b'{"hello": 1}', "is no export that is known here. For deepseek take deepseek-amount"),
    "cut JSON": (b'{"data": [{"starting_at"', "is no JSON: .*was it downloaded to its end"),
    "no results": (b'{"data": [{"results": []}], "has_more": false}', "has no results: is the period right"),
    "a refusal": (b'{"error": {"message": "no"}}', "is the vendor's error"),
    "NaN": (b'{"data": [{"results": [{"amount": NaN}]}]}', "NaN is no number"),
    "deep JSON": (b"[" * 100_000, "is no JSON"),
    "Latin-1": ("utc_date,type,amount,model\n2026-10-01,output_tokens,1,é\n".encode("latin-1"), "is not UTF-8"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_named_as_what_it_is(what: str, tmp_path: Path) -> None:
    """With what to do about it."""
    data, reason = WRONG[what]
    path = tmp_path / "invoice"
    path.write_bytes(data)
    with pytest.raises(InvoiceError, match=reason) as caught:
        read(path)
    assert str(caught.value).startswith("invoice")


def test_files_that_are_not_there_or_given_twice(tmp_path: Path) -> None:
    """Said at once, before a line is read."""
    with pytest.raises(InvoiceError, match="No such file"):
        read_invoice(tmp_path / "nowhere.csv", "deepseek")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvoiceError, match="the folder is empty"):
        read_invoice(tmp_path / "empty", "deepseek")
    with pytest.raises(InvoiceError, match="is given twice"):
        read_invoices([AMOUNT, AMOUNT], "deepseek")


def test_another_vendors_export_is_not_taken_by_mistake() -> None:
    """Unless the form is named: an upstream may be called what it is not."""
    with pytest.raises(InvoiceError, match=r"is an export of openai \(openai-usage\), and not of anthropic"):
        read_invoice(SAMPLES / "openai-usage.json", "anthropic")
    assert read_invoice(SAMPLES / "openai-usage.json", "anthropic", form="openai-usage").form == "openai-usage"
    assert read_invoice(SAMPLES / "openai-usage.json", "litellm").form == "openai-usage"


def test_a_named_form_says_what_the_file_lacks() -> None:
    """A column, or that it is no JSON at all."""
    with pytest.raises(InvoiceError, match=r"is not in the form aws: it has no column lineItem/UsageType or line_item"):
        read_invoice(AMOUNT, "bedrock", form="aws")
    with pytest.raises(InvoiceError, match="is no JSON, and openai-costs is"):
        read_invoice(AMOUNT, "openai", form="openai-costs")


def test_problems_are_told_together_with_their_places(tmp_path: Path) -> None:
    """All of them, so that a file has to be mended once."""
    lines = AMOUNT.read_text(encoding="utf-8").split("\n")
    lines[2] = lines[2].replace("4096", "many")
    lines[4] = lines[4].replace("2026-10-01", "soon")
    lines[5] = lines[5].replace("output_tokens", "audio_tokens")
    path = tmp_path / "amount.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InvoiceError) as caught:
        read(path)
    assert str(caught.value).split("\n") == [
        "amount.csv:3: 'many' is no number",
        "amount.csv:5: 'soon' is no day such as 2026-10-05",
        "amount.csv:6: the type 'audio_tokens' is not known; known are request_count, input_cache_miss_tokens, "
        "input_cache_hit_tokens, output_tokens",
    ]


def test_after_twenty_problems_reading_stops(tmp_path: Path) -> None:
    """And it says so: a wrong file of a million lines has not a million messages."""
    heading, row = AMOUNT.read_text(encoding="utf-8").split("\n")[:2]
    path = tmp_path / "amount.csv"
    path.write_text("\n".join([heading, *[row.replace(",12", ",x")] * 50]), encoding="utf-8")
    with pytest.raises(InvoiceError) as caught:
        read(path)
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1][1] == "reading stopped after 20 problems; there may be more"


def test_a_delimiter_that_is_not_quoted_is_no_shifted_row(tmp_path: Path) -> None:
    """The figures would stand in wrong columns."""
    path = tmp_path / "amount.csv"
    path.write_text(AMOUNT.read_text(encoding="utf-8").replace("چت", "a,b"), encoding="utf-8")
    with pytest.raises(InvoiceError, match=r"amount\.csv:2: has 9 cells, and the heading 8: is a delimiter not quoted"):
        read(path)


def test_json_has_a_limit_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as a whole; a table is not."""
    size = (SAMPLES / "openai-usage.json").stat().st_size
    path = tmp_path / "usage.json.gz"
    path.write_bytes(gzipped((SAMPLES / "openai-usage.json").read_bytes()))
    monkeypatch.setattr(files_module, "MOST_JSON_BYTES", size)
    assert read(path, "openai").lines == 3
    monkeypatch.setattr(files_module, "MOST_JSON_BYTES", size - 1)
    with pytest.raises(InvoiceError, match="ask for fewer days at a time"):
        read(path, "openai")


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ({"data": [{"results": [{"uncached_input_tokens": 1}]}]}, "its bucket has no starting_at"),
        ({"data": [{"starting_at": "now", "results": [{"uncached_input_tokens": 1}]}]}, "is no moment"),
        ({"data": [{"results": [{"uncached_input_tokens": -1}]}]}, "uncached_input_tokens is '-1', and must be"),
        ({"data": [{"results": [{"uncached_input_tokens": 1}, 5]}]}, "data/0/results/1 is no object"),
        ({"data": [{"results": [{"uncached_input_tokens": 1}]}, {}]}, "data/1 has no list `results`"),
    ],
)
def test_a_page_with_a_hole_is_no_shorter_invoice(page: object, reason: str, tmp_path: Path) -> None:
    """What cannot be read is said, never left out."""
    path = tmp_path / "usage.json"
    path.write_text(json.dumps(page))
    with pytest.raises(InvoiceError, match=reason):
        read(path, "anthropic")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(",;\t|"),
    st.text(max_size=30),
)
def test_quoting_is_no_matter(tmp_path: Path, quoting: int, delimiter: str, name: str) -> None:
    """A text with delimiters, quotes and line ends in one column moves no figure in another."""
    rows = list(csv.DictReader(io.StringIO(ROUTER.read_text(encoding="utf-8"))))
    for row in rows:
        row["app_name"] = name.replace("\x00", "")
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, quoting=quoting)  # type: ignore[arg-type]
    writer.writeheader()
    writer.writerows(rows)
    path = tmp_path / "activity.csv"
    path.write_bytes(out.getvalue().encode("utf-8", "replace"))
    assert read(path, "openrouter") == read(ROUTER, "openrouter")


ALL = sorted(path for path in SAMPLES.iterdir() if path.suffix in (".csv", ".json"))
_SPLICES = st.tuples(st.integers(0, 2_000), st.integers(0, 40), st.one_of(st.binary(max_size=8), st.text(max_size=8)))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(ALL), st.lists(_SPLICES, min_size=1, max_size=3), st.booleans())
def test_hostile_files_are_refused_and_nothing_else(
    tmp_path: Path, sample: Path, splices: list[tuple[int, int, bytes | str]], is_packed: bool
) -> None:
    """Whatever is cut out of a file and put into it: lines, or an `InvoiceError`."""
    data = sample.read_bytes()
    for at, cut, put in splices:
        put = put.encode("utf-8", "replace") if isinstance(put, str) else put
        data = data[:at] + put + data[at + cut :]
    path = tmp_path / "invoice"
    path.write_bytes(gzipped(data) if is_packed else data)
    try:
        read(path, "any")
    except InvoiceError as error:
        assert error.problems
        assert all(place and reason for place, reason in error.problems)

"""The page of a report in a real browser: it needs nothing, says no error, fits, can be read aloud, and prints."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright

from proxy.books.document import Column, Document, Kind, Table
from proxy.books.render.html import render_html
from tests.support.documents import HOSTILE, report
from tests.support.needs import needs

pytestmark = [needs("chromium"), pytest.mark.clause("L4")]

#: Points of a page of Letter, which is the browser's own default.
_LETTER = (612, 792)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    path = next(one for one in found if one is not None)
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        one = await playwright.chromium.launch(executable_path=path, args=arguments)
        yield one
        await one.close()


def many_columns() -> Document:
    """Wider than paper: a usage report by three keys, over sixty rows."""
    names = ("requests", "input", "output", "reasoning", "cache_read", "cache_write")
    columns = (
        *(Column(name, name.capitalize()) for name in ("tenant", "model")),
        Column("day", "Day", Kind.DAY),
        *(Column(f"{side}_{name}", f"{name}, {side}", Kind.INTEGER, total=True) for side in "abc" for name in names),
        Column("cost", "Cost", Kind.MONEY, currency="USD", total=True),
    )
    row = report().tables[0].rows[0]
    rows = [(f"فروشگاه {n}", "meta-llama/llama-3.3-70b-instruct", row[1], *([12_345_678] * 18), n) for n in range(60)]
    return replace(report(), tables=(Table("usage", "Usage", columns, rows, totals=True),))


async def opened(browser: Browser, file: Path, document: Document, **look: Any) -> tuple[Page, list[str]]:
    """The page, and what it complained of and asked for beside itself."""
    await asyncio.to_thread(file.write_text, render_html(document), encoding="utf-8")
    page = await browser.new_page(**look)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url != file.as_uri() else None)
    await page.goto(file.as_uri())
    return page, said


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
async def test_a_page_opens_without_a_request_or_an_error(
    width: int, scheme: str, browser: Browser, tmp_path: Path
) -> None:
    """Wide, dark and on a telephone: all is there as it was written, and nothing is wider than the window."""
    document, size = report(), {"width": width, "height": 900}
    page, said = await opened(browser, tmp_path / "report.html", document, viewport=size, color_scheme=scheme)
    assert await page.title() == document.title
    assert await page.locator("h2").all_inner_texts() == [table.title for table in document.tables]
    assert await page.locator("figure svg[role=img]").count() == len(document.charts)
    rows = page.locator("section tbody tr")
    assert await rows.count() == len(HOSTILE) + 1 + 1
    assert await page.locator("tfoot tr").count() == 3
    first = await rows.locator("th").all_inner_texts()
    assert first[:7] == list(HOSTILE[:7])
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    outside = await page.evaluate(
        """limit => [...document.querySelectorAll("h1,h2,.card,.card *,.facts *,figure>svg,.legend *,.notes,.wide")]
        .filter(one => one.getBoundingClientRect().right > limit + 0.5).map(one => one.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == []
    background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    assert said == []
    await page.close()


async def test_texts_of_an_axis_do_not_touch(browser: Browser, tmp_path: Path) -> None:
    """As this browser's letters are, not as they were estimated; and each is inside of its drawing."""
    page, _ = await opened(browser, tmp_path / "report.html", report(), viewport={"width": 1280, "height": 900})
    touching = await page.evaluate(
        """() => [...document.querySelectorAll("figure>svg")].flatMap(svg => {
            const boxes = [...svg.querySelectorAll("text")].map(one => [one.textContent, one.getBBox()]);
            const found = boxes.filter(([_, box]) => box.x < -1 || box.x + box.width > 521).map(([text]) => text);
            boxes.forEach(([text, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
                if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height)
                    found.push(`${text} and ${other}`);
            }));
            return found;
        })"""
    )
    assert touching == []
    await page.close()


async def test_colours_have_the_contrast_that_reading_needs(browser: Browser, tmp_path: Path) -> None:
    """4.5 to 1 for texts, light and dark, as WCAG AA has it."""
    for scheme in ("light", "dark"):
        page, _ = await opened(browser, tmp_path / "report.html", report(), color_scheme=scheme)
        colours = await page.evaluate(
            """() => [".facts dt", ".facts dd", ".card .label", ".bad .figure", ".good .tone", ".about", "thead th",
                "tbody td", ".legend span", ".notes li"].map(name => {
                const one = document.querySelector(name);
                let under = one, paper = "rgba(0, 0, 0, 0)";
                while (under && paper === "rgba(0, 0, 0, 0)") {
                    paper = getComputedStyle(under).backgroundColor;
                    under = under.parentElement;
                }
                return [name, getComputedStyle(one).color, paper];
            })"""
        )
        for name, ink, paper in colours:
            lighter, darker = sorted((luminance(ink), luminance(paper)), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (scheme, name, ink, paper)
        await page.close()


def luminance(colour: str) -> float:
    """Of `rgb(r, g, b)`, relative, as WCAG computes it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_a_page_can_be_read_aloud(browser: Browser, tmp_path: Path) -> None:
    """Drawings and tables have names, rows and columns their headings; the figures of a drawing are a table."""
    page, _ = await opened(browser, tmp_path / "report.html", report())
    assert await page.get_by_role("img", name="Cost by day").count() == 1
    table = page.get_by_role("table", name="Usage").first
    assert await table.get_by_role("columnheader", name="Tokens, vendor").count() == 1
    assert await table.get_by_role("rowheader", name="nobody").count() == 1
    assert await table.get_by_role("rowheader", name="Total USD").count() == 1
    figure = page.locator("figure").first
    assert not await figure.locator("table").is_visible()
    await figure.locator("summary").click()
    assert await figure.locator("tbody tr").count() == 31
    assert await figure.locator("tbody tr").nth(9).locator("td").all_inner_texts() == ["12", ""]
    await page.close()


async def test_a_wide_table_is_scrolled_alone_and_keeps_its_first_column(browser: Browser, tmp_path: Path) -> None:
    """The page itself does not move to the side."""
    page, said = await opened(
        browser, tmp_path / "report.html", many_columns(), viewport={"width": 1280, "height": 900}
    )
    frame = page.locator("section .wide")
    assert await frame.evaluate("one => one.scrollWidth > one.clientWidth")
    first = page.locator("section tbody th").first
    before = await first.bounding_box()
    await frame.evaluate("one => one.scrollLeft = 400")
    assert await first.bounding_box() == before
    assert await page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert said == []
    await page.close()


@pytest.mark.parametrize(("document", "across", "most"), [(report(), False, 3), (many_columns(), True, 5)])
async def test_a_page_prints(document: Document, across: bool, most: int, browser: Browser, tmp_path: Path) -> None:
    """On a few sheets, a wide table across, with the table's headings on each and nothing cut off at the side."""
    page, said = await opened(browser, tmp_path / "report.html", document)
    target = tmp_path / "report.pdf"
    await page.pdf(path=target, prefer_css_page_size=True)
    data = await asyncio.to_thread(target.read_bytes)
    boxes = re.findall(rb"/Type\s*/Page\b[^s].*?/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", data, re.DOTALL)
    assert 1 <= len(boxes) <= most
    width, height = _LETTER[::-1] if across else _LETTER
    assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {(width, height)}
    await page.emulate_media(media="print")
    millimetre = 96 / 25.4
    room = round((width / 72 * 25.4 - 28) * millimetre)
    await page.set_viewport_size({"width": room, "height": 700})
    assert await page.evaluate("document.documentElement.scrollWidth") <= room
    assert await page.evaluate("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    assert await page.evaluate("getComputedStyle(document.querySelector('tbody tr')).breakInside") == "avoid"
    assert not await page.locator("summary").first.is_visible()
    assert said == []
    await page.close()


async def test_paper_is_printed_dark_on_white(browser: Browser, tmp_path: Path) -> None:
    """Even from a screen that is dark."""
    page, _ = await opened(browser, tmp_path / "report.html", report(), color_scheme="dark")
    await page.emulate_media(media="print", color_scheme="dark")
    style = await page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert style == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    await page.close()


async def test_two_browsers_paint_the_same_page(browser: Browser, tmp_path: Path) -> None:
    """Nothing on it moves, waits or depends on when it was opened."""
    pictures = []
    for name in ("one.html", "two.html"):
        page, _ = await opened(browser, tmp_path / name, report(), viewport={"width": 900, "height": 600})
        pictures.append(zlib.crc32(await page.screenshot(full_page=True)))
        await page.close()
    assert pictures[0] == pictures[1]

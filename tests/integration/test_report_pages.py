"""The page of a report in a real browser: it needs nothing, says no error, fits, and prints (contract L4)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

from proxy.books.render.html import render_html
from tests.support.documents import HOSTILE, report
from tests.support.needs import needs

pytestmark = [needs("chromium"), pytest.mark.clause("L4")]


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    path = shutil.which("chromium")
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        one = await playwright.chromium.launch(executable_path=path, args=arguments)
        yield one
        await one.close()


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    file = tmp_path / "report.html"
    file.write_text(render_html(report()), encoding="utf-8")
    return file


async def opened(browser: Browser, file: Path, width: int, scheme: str = "light") -> tuple[Page, list[str], list[str]]:
    """The page, what it complained of, and what it asked for."""
    page = await browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(file.as_uri())
    return page, said, asked


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
async def test_a_page_opens_without_a_request_or_an_error(
    width: int, scheme: str, browser: Browser, page_file: Path
) -> None:
    """Wide, dark and on a telephone: all is there, and nothing is wider than the window."""
    page, said, asked = await opened(browser, page_file, width, scheme)
    assert (said, asked) == ([], [page_file.as_uri()])
    assert await page.title() == report().title
    assert await page.locator("h2").all_inner_texts() == [table.title for table in report().tables]
    assert await page.locator("figure svg[role=img]").count() == 3
    assert await page.locator("tbody tr").count() == len(HOSTILE) + 1 + 1
    assert await page.locator("tfoot tr").count() == 2
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    first = page.locator("tbody tr").first.locator("td").first
    assert await first.inner_text() == HOSTILE[0]
    await page.close()


async def test_a_page_prints(browser: Browser, page_file: Path, tmp_path: Path) -> None:
    """As a PDF of a few pages, with the headings of tables on each."""
    page, _, _ = await opened(browser, page_file, 1280)
    target = tmp_path / "report.pdf"
    await page.pdf(path=target, prefer_css_page_size=True)
    pages = (await asyncio.to_thread(target.read_bytes)).count(b"/Type /Page\n")
    assert 1 <= pages <= 5
    await page.emulate_media(media="print")
    assert await page.evaluate("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    await page.close()

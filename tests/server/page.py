"""The search page in a real browser: run by `make test-page`, which installs what it needs. Not part of `make test`.

    python tests/server/page.py [--model MODEL] [--pictures FOLDER]

Without a model it trains a small one. Exits with 0 when every claim holds, 1 when one does not, and 3, with the reason,
when there is no browser.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.serving import TOKEN, Running, shop

CANNOT_RUN = 3
QUERIES = {"shop": "warm wool socks", "library-subjects": "history of jazz in new orleans"}
README_SIZE = (1100, 900)
SIZES = {"desktop": (1180, 860), "phone": (375, 812)}


@contextmanager
def page_of(
    browser: Any, url: str, size: tuple[int, int], scheme: str = "light", expected: str | None = None
) -> Iterator[Any]:
    """A page of its own; no error may have been written to its console when it ends, but one that is expected."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    home = "/".join(url.split("/")[:3]) + "/"
    page.on("request", lambda r: None if r.url.startswith((home, "data:")) else errors.append(f"loads {r.url}"))
    page.goto(url)
    yield page
    context.close()
    errors = [error for error in errors if expected is None or expected not in error]
    assert errors == [], errors


def until(page: Any, claim: str, seconds: float = 30.0) -> None:
    """Waits until an expression holds. Asked from outside: the page's own policy forbids it to evaluate strings."""
    ends = time.monotonic() + seconds
    while not page.evaluate(claim):
        assert time.monotonic() < ends, f"never came true: {claim}"
        page.wait_for_timeout(30)


def typed(page: Any, query: str) -> None:
    """Types a query, key by key, and waits for its hits."""
    page.type("#query", query, delay=10)
    until(
        page,
        "document.querySelectorAll('.hit').length > 0 && document.querySelector('#engine').textContent.includes('s')",
    )
    page.wait_for_timeout(300)


def names(page: Any) -> list[str]:
    """The hits that are shown."""
    return list(page.eval_on_selector_all(".hit .name", "found => found.map(e => e.textContent)"))


def milliseconds(shown: str) -> float:
    """A time that the page shows, as a number."""
    amount, unit = shown.split()
    return float(amount) / {"µs": 1000, "ms": 1}[unit]


class Claims:
    """What the page must show, one claim a method."""

    def __init__(self, browser: Any, url: str, query: str) -> None:
        self.browser, self.url, self.query = browser, url, query

    def typing_shows_ranked_hits_with_bars_and_times(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            typed(page, self.query)
            assert len(names(page)) > 1
            assert page.evaluate("document.querySelector('.bar i').offsetWidth") > 50
            drawn = page.evaluate("parseFloat(document.querySelector('.bar i').style.width) / 100")
            told = float(page.evaluate("document.querySelector('.score').title.split(' ')[1]"))
            assert abs(drawn - told) < 0.01, "a bar shows the score itself, not its share of the best"
            assert page.evaluate("document.querySelector('.hit .name').dir") == "auto"
            assert "µs" in page.inner_text("#engine") or "ms" in page.inner_text("#engine")
            assert "s" in page.inner_text("#call")
            assert "hits in" in page.inner_text("#status")

    def the_whole_call_is_the_time_on_the_wire(self) -> None:
        """Not the page's own drawing: the best of a few calls takes a few milliseconds, never less than the engine."""
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            seen = []
            for _ in range(8):
                page.fill("#query", "")
                typed(page, self.query)
                engine, call = (milliseconds(page.inner_text(place)) for place in ("#engine", "#call"))
                assert call >= engine
                seen.append(call)
            assert min(seen) < 5, seen

    def the_beam_changes_time_and_result(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            typed(page, self.query)
            page.focus("#beam")
            page.keyboard.press("Home")
            until(page, "document.querySelector('#beam-value').textContent === '1'")
            until(page, "new URLSearchParams(location.search).get('beam') === '1'")
            page.wait_for_selector("#chart button")
            assert page.locator("#chart button").count() == 7
            page.click("#chart button >> nth=5")
            until(page, "document.querySelector('#beam-value').textContent === '50'")
            assert page.get_attribute("#beam", "aria-valuetext") == "beam 50"

    def what_is_typed_before_the_models_are_known_is_asked_then(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            held: list[Any] = []

            def hold(route: Any) -> None:
                held.append(route)

            page.route("**/v1/models", hold)
            page.reload()
            page.type("#query", self.query, delay=10)
            page.focus("#beam")
            page.keyboard.press("Home")
            assert page.locator(".hit").count() == 0
            held[0].continue_()
            until(page, "document.querySelectorAll('.hit').length > 0")

    def a_hit_opens_its_path_and_the_words_shares(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            typed(page, self.query)
            page.click(".hit button >> nth=0")
            page.wait_for_selector(".why table")
            assert page.get_attribute(".hit button >> nth=0", "aria-expanded") == "true"
            assert page.locator(".why .path li").count() >= 2
            words = page.eval_on_selector_all(".why tbody th", "found => found.map(e => e.textContent)")
            assert set(words) & set(self.query.split())
            page.click(".hit button >> nth=0")
            assert page.locator(".why").count() == 0

    def keys_alone_are_enough(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            page.evaluate("document.activeElement.blur()")
            page.keyboard.press("/")
            page.keyboard.type(self.query)
            page.wait_for_selector(".hit")
            page.wait_for_timeout(300)
            page.keyboard.press("ArrowDown")
            page.keyboard.press("ArrowDown")
            assert page.evaluate("[...document.querySelectorAll('.hit > button')].indexOf(document.activeElement)") == 1
            page.keyboard.press("Enter")
            page.wait_for_selector(".why table")
            page.keyboard.press("Escape")
            assert page.locator(".why").count() == 0
            page.keyboard.press("Escape")
            assert page.evaluate("document.activeElement.id") == "query"

    def dark_and_light_differ_and_can_be_chosen(self) -> None:
        colour = "getComputedStyle(document.body).backgroundColor"
        seen = []
        for scheme in ("light", "dark"):
            with page_of(self.browser, self.url, SIZES["desktop"], scheme) as page:
                seen.append(page.evaluate(colour))
        assert seen[0] != seen[1]
        with page_of(self.browser, self.url, SIZES["desktop"], "light") as page:
            page.click("#theme")
            page.click("#theme")
            assert page.get_attribute("#theme", "aria-label") == "Colours: dark"
            assert page.evaluate(colour) == seen[1]
            page.reload()
            assert page.evaluate(colour) == seen[1]

    def a_phone_needs_no_sideways_scrolling(self) -> None:
        with page_of(self.browser, self.url, SIZES["phone"], "dark") as page:
            typed(page, self.query)
            page.click(".hit button >> nth=0")
            page.wait_for_selector(".why table")
            assert page.evaluate("document.documentElement.scrollWidth") <= 375

    def everything_that_can_be_used_has_a_name(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            typed(page, self.query)
            unnamed = page.evaluate(
                "[...document.querySelectorAll('button, input, select, a')].filter(e => e.offsetParent && !("
                "e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length)))"
                ".map(e => e.outerHTML)"
            )
            assert unnamed == []
            assert page.locator("h1").count() == 1

    def as_many_labels_as_wanted_and_the_question_as_a_command(self) -> None:
        """The command, taken apart as a shell does, asks for the labels of the page."""
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            typed(page, self.query + " isn't")
            page.select_option("#count", "5")
            until(page, "new URLSearchParams(location.search).get('k') === '5'")
            until(page, "document.querySelectorAll('.hit').length <= 5")
            page.click("#curl")
            until(page, "!document.querySelector('#command').hidden")
            curl, option, body, url = shlex.split(page.inner_text("#command"))
            assert (curl, option) == ("curl", "-d")
            with urllib.request.urlopen(url, body.encode()) as answer:  # as curl does: POST, a form's content type
                assert [hit["name"] for hit in json.load(answer)["hits"]] == names(page)
            page.reload()
            until(page, "document.querySelectorAll('.hit').length > 0")
            assert page.input_value("#count") == "5"

    def labels_are_filtered_by_key_by_name_and_by_score(self) -> None:
        """A hit is left out and taken back, another asked for by name; the address keeps it; unknown ones are said."""
        with page_of(self.browser, self.url, SIZES["phone"], expected="status of 404") as page:
            typed(page, self.query)
            every = names(page)
            page.click(".hit button >> nth=0")
            page.click(".leave")
            until(page, f"document.querySelector('.hit .name').textContent === {json.dumps(every[1])}")
            assert every[0] not in names(page)
            assert page.inner_text("#filter-count") == "1"
            page.click("#filter-labels button")
            until(page, f"document.querySelector('.hit .name').textContent === {json.dumps(every[0])}")
            page.fill("#filter-label", every[1].upper())
            page.keyboard.press("Enter")
            until(page, "document.querySelectorAll('.hit').length === 1")
            assert names(page) == [every[1]]
            page.reload()
            until(page, "document.querySelectorAll('.hit').length === 1")
            assert names(page) == [every[1]]
            page.click("#filter-labels button")
            until(page, "document.querySelectorAll('.hit').length > 1")
            page.fill("#filter-label", "no such label")
            page.click("#filter-form button >> nth=1")
            until(page, "document.querySelector('#filter-said').textContent.includes('no such label')")
            second = float(page.evaluate("document.querySelectorAll('.score')[1].title.split(' ')[1]"))
            page.fill("#least", str(2 * second))
            until(page, "document.querySelectorAll('.hit').length < 2")
            assert page.evaluate("document.documentElement.scrollWidth") <= 375

    def the_address_keeps_the_query(self) -> None:
        with page_of(self.browser, f"{self.url}?q=" + self.query.replace(" ", "+"), SIZES["desktop"]) as page:
            page.wait_for_selector(".hit")
            assert page.input_value("#query") == self.query

    def unknown_words_are_said_to_be_unknown(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            page.type("#query", "qqqqxyz")
            until(page, "document.querySelector('#empty').textContent.includes('knows none')")

    def words_that_the_model_does_not_know_are_named(self) -> None:
        with page_of(self.browser, self.url, SIZES["desktop"]) as page:
            typed(page, f"{self.query} qqqqxyz")
            until(page, "!document.querySelector('#unknown').hidden")
            assert page.inner_text("#unknown") == "Left out, not known to the model: qqqqxyz"
            page.fill("#query", self.query)
            until(page, "document.querySelector('#unknown').hidden")

    def the_box_grows_with_a_long_text(self) -> None:
        with page_of(self.browser, self.url, SIZES["phone"]) as page:
            typed(page, self.query)
            low = page.locator("#query").bounding_box()["height"]
            page.fill("#query", "\n".join([self.query] * 5))
            until(page, f"document.querySelector('#query').clientHeight > {2 * low}")
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            page.fill("#query", "\n".join([self.query] * 200))
            until(page, "document.querySelectorAll('.hit').length > 0")
            assert page.locator("#query").bounding_box()["height"] < 400
            page.keyboard.press("Shift+Enter")
            assert page.input_value("#query").endswith("\n")

    def the_page_about_the_api_lists_its_routes(self) -> None:
        with page_of(self.browser, f"{self.url}docs", SIZES["phone"]) as page:
            page.wait_for_selector("section.card")
            assert page.locator("section.card").count() >= 12
            assert page.evaluate("document.documentElement.scrollWidth") <= 375


def shows_the_api_without_a_token(browser: Any, url: str) -> None:
    """The page about the API, its script too, needs no token."""
    with page_of(browser, f"{url}docs", SIZES["desktop"]) as page:
        page.wait_for_selector("section.card")
        assert "authorization: Bearer TOKEN" in page.inner_text("#operations")
        shown = page.locator("pre").all_inner_texts()
        requests = [text for text in shown if text.startswith("curl")]
        assert len(requests) * 2 == len(shown), "each operation has a request and an answer"
        assert "{" not in "".join(requests).replace('{"', "")
        assert '"known_terms": 3' in "".join(shown)


def asks_for_the_token(browser: Any, url: str) -> None:
    """A page whose server wants a token asks for it, and then works."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("#token-form:not([hidden])")
    page.fill("#token", TOKEN)
    page.click("#token-form button")
    page.wait_for_selector("#token-form", state="hidden")
    typed(page, QUERIES["shop"])
    context.close()


def pictures(browser: Any, url: str, query: str, folder: Path) -> None:
    """Screenshots to look at; search-page.png is README's, of library-subjects with the default preset."""
    folder.mkdir(parents=True, exist_ok=True)
    with page_of(browser, url, README_SIZE) as page:
        for _ in range(10):  # times of a model whose pages are in memory
            page.fill("#query", "")
            typed(page, query)
        page.click(".hit button >> nth=0")
        page.wait_for_selector(".why table")
        page.evaluate("for (const tree of document.querySelectorAll('.why details')) tree.open = false")
        page.wait_for_selector("#chart button", state="attached")
        page.wait_for_timeout(1500)
        page.screenshot(path=folder / "search-page.png", full_page=True)
    for scheme in ("light", "dark"):
        for name, size in SIZES.items():
            with page_of(browser, url, size, scheme) as page:
                page.screenshot(path=folder / f"{name}-{scheme}-start.png")
                typed(page, query)
                page.click(".hit button >> nth=0")
                page.wait_for_selector(".why table")
                page.wait_for_selector("#chart button", state="attached")
                page.wait_for_timeout(1000)
                page.screenshot(path=folder / f"{name}-{scheme}.png", full_page=True)


def browser_path() -> str | None:
    """Chromium as Debian installs it, or under its other names."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def main() -> int:
    """Runs every claim."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--model", type=Path)
    options.add_argument("--pictures", type=Path)
    given = options.parse_args()
    chromium = browser_path()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("test-page did NOT run: it needs chromium (a package of Debian) and playwright (pip install playwright)")
        return CANNOT_RUN
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        model = given.model or Path(folder, "shop.bw")
        if given.model is None:
            shop().save(model)
        Path(folder, "token").write_text(TOKEN)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        query = QUERIES.get(model.stem, QUERIES["library-subjects"])
        failed = 0
        with Running(model) as server, Running(model, "--token-file", Path(folder, "token")) as guarded:
            claims = Claims(browser, f"{server.url}/", query)
            checks: dict[str, Callable[[], None]] = {
                name: getattr(claims, name) for name in vars(Claims) if not name.startswith("_")
            }
            if given.model is None:
                checks["the_page_about_the_api_needs_no_token"] = lambda: shows_the_api_without_a_token(
                    browser, f"{guarded.url}/"
                )
                checks["a_token_is_asked_for"] = lambda: asks_for_the_token(browser, f"{guarded.url}/")
            for name, check in checks.items():
                try:
                    check()
                    print(f"ok      {name}")
                except Exception as error:
                    failed += 1
                    print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:500]}")
            if given.pictures:
                pictures(browser, f"{server.url}/", query, given.pictures)
        browser.close()
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

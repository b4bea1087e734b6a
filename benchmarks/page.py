"""How long the page of a run takes to open in Chromium, and what it weighs: python benchmarks/page.py RUN."""

import shutil
import statistics
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

REPEATS = 9


def main() -> None:
    path = Path(sys.argv[1], "report.html").resolve()
    loaded, drawn = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(REPEATS):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            loaded.append(time.perf_counter() - start)
            page.wait_for_selector(".plot[data-drawn]", state="attached")
            drawn.append(time.perf_counter() - start)
            context.close()
        browser.close()
    print(f"{path.stat().st_size / 1e6:.2f} MB")
    for what, times in (("loaded", loaded), ("first figure drawn", drawn)):
        print(f"{what}: median {statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f} s")


if __name__ == "__main__":
    main()

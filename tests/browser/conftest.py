"""One Chromium for all tests here; a loud skip where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            "NO BROWSER: reports are not looked at; install Chromium (as root, `make chromium` does), or set CHROMIUM"
        )
    playwright = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: pip install 'epsilometer[dev]'")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()

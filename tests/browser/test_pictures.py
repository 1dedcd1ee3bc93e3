"""Pictures of the console are what the browser drew: a palette changes no colour as long as there are few of them."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from playwright.sync_api import Browser

from tests.browser.picturing import BYTES_MAX, OUT, PICTURES
from tests.browser.small_png import chunks, pixels, small


def painted(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The pixels of a picture with a palette, as `small` writes it."""
    parts = dict(chunks(png))
    width, height, bits, kind = struct.unpack_from(">IIBB", parts[b"IHDR"])
    assert (bits, kind) == (8, 3)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + width)
    return np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]


def test_a_small_picture_is_the_same_to_the_eye(chromium: Browser) -> None:
    page = chromium.new_page(viewport={"width": 300, "height": 200})
    page.set_content(
        "<body style='background:#f0f6f8'><h1 style='color:#166680'>Topics</h1><b style='color:#c60'>42</b>"
    )
    drawn = page.screenshot()
    page.close()
    made = small(drawn)
    assert len(made) < len(drawn)
    apart = np.abs(painted(made).astype(int) - pixels(drawn).astype(int))
    assert apart.max() <= 24, "every colour that is left out has one beside it"
    assert apart.mean() < 0.5


def test_pictures_in_the_repository_are_small() -> None:
    found = sorted(OUT.glob("*.png"))
    assert found, "make them: python -m tests.browser.picturing"
    for picture in found:
        assert picture.stem in PICTURES, f"{picture.name} is made by nobody any more"
        assert picture.stat().st_size <= BYTES_MAX
        assert struct.unpack_from(">II", picture.read_bytes(), 16) == (1280, 800)

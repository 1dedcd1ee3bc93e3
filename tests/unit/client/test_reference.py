from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from penstock.client.reference import reference_page
from penstock.client.settings import AdminSettings, CommonSettings, ConsumerSettings, ProducerSettings

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "client.md"


def test_the_reference_page_is_what_the_tables_print() -> None:
    assert PAGE.read_text() == reference_page(), "run: make docs"


@pytest.mark.parametrize("settings", [ProducerSettings, ConsumerSettings, AdminSettings])
def test_every_setting_has_a_line(settings: type[CommonSettings]) -> None:
    page = reference_page()
    assert [setting.name for setting in fields(settings) if f"\n| `{setting.name}` |" not in page] == []

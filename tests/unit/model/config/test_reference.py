from pathlib import Path

from penstock.model.config import BROKER_CONFIGS, TOPIC_CONFIGS
from penstock.model.config.reference import reference_page

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "configuration.md"


def test_the_reference_page_is_what_the_tables_print() -> None:
    assert PAGE.read_text() == reference_page(), (
        "run: python -m penstock.model.config.reference > docs/reference/configuration.md"
    )


def test_every_property_has_a_line() -> None:
    page = reference_page()
    assert all(f"\n| `{name}` |" in page for name in BROKER_CONFIGS | TOPIC_CONFIGS)

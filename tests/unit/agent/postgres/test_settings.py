"""How a Postgres input is written, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.agent.inputs.postgres.secrets import WrongSecret, resolved
from penstock.agent.inputs.postgres.settings import PostgresSettings
from penstock.agent.settings.reading import Examined, examine

HEAD = 'name = "a"\n[inputs.Shop-Db]\ntype = "postgres"\ntopic = "{source.table}"\n'


def examined(text: str) -> Examined:
    return examine(HEAD + text, Path("/etc/agent.toml"), {})


def settings(text: str) -> PostgresSettings:
    found = examined(text)
    assert found.settings is not None, found.mistakes
    own = found.settings.inputs["Shop-Db"].own
    assert isinstance(own, PostgresSettings)
    return own


def test_little_needs_to_be_said() -> None:
    found = settings('dsn = "service=shop"\ntables = "public.*"\n')
    assert (found.slot, found.publication, found.server) == ("penstock_shop_db", "penstock_shop_db", "Shop-Db")
    assert (found.tables, found.snapshot, found.tombstones, found.folder) == (
        ("public.*",),
        "initial",
        True,
        Path("/etc"),
    )


def test_tables_are_chosen_by_globs() -> None:
    found = settings('dsn = "x"\ntables = ["public.*", "shop.orders"]\nexclude = ["*.tmp_*"]\n')
    names = ("public.a", "public.tmp_a", "shop.orders", "shop.lines", "Public.a")
    assert [name for name in names if found.wants(name)] == ["public.a", "shop.orders"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('tables = "a.b"\n', 2, "has no dsn: where the server is"),
        ('dsn = "x"\n', 2, "has no tables: which are followed"),
        ('dsn = "env:"\ntables = "a.b"\n', 5, "names nothing: write env:NAME or file:NAME"),
        ('dsn = "x"\ntables = ["orders"]\n', 6, "'orders' has no schema: write \"public.orders\""),
        ('dsn = "x"\ntables = "a.b"\nslot = "Shop"\n', 7, "small letters, digits and '_'"),
        ('dsn = "x"\ntables = "a.b"\npublication = "a b"\n', 7, "small letters, digits and '_'"),
        ('dsn = "x"\ntables = "a.b"\nsnapshot = "initially"\n', 7, "snapshot = 'initially' is not known"),
        ('dsn = "x"\ntables = "a.b"\ntable = "a.b"\n', 7, "table"),
    ],
)
def test_a_mistake_names_its_line_and_what_to_write(text: str, line: int, words: str) -> None:
    (mistake,) = examined(text).mistakes
    assert mistake.line == line
    assert words in mistake.words


@pytest.mark.parametrize(
    ("dsn", "warned"),
    [
        ("postgresql://me:secret@db/shop", True),
        ("host=db password=secret", True),
        ("postgresql://me@db/shop", False),
        ("env:SHOP_DSN", False),
    ],
)
def test_a_password_in_the_file_is_warned_of_and_never_shown(dsn: str, warned: bool) -> None:
    text = f'dsn = "{dsn}"\ntables = "a.b"\n'
    assert [warning.line for warning in examined(text).warnings] == ([5] if warned else [])
    assert dsn not in repr(settings(text))


def test_a_login_is_where_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text("host=db\n")
    assert resolved("file:dsn", tmp_path, {}) == "host=db"
    assert resolved("env:DSN", tmp_path, {"DSN": " host=db "}) == "host=db"
    assert resolved("host=db", tmp_path, {}) == "host=db"
    assert resolved("postgresql://db", tmp_path, {}) == "postgresql://db"
    for wrong, words in (("env:DSN", "the environment has no DSN"), ("file:nowhere", "cannot be read")):
        with pytest.raises(WrongSecret, match=words):
            resolved(wrong, tmp_path, {})
    (tmp_path / "dsn").write_text("\n")
    with pytest.raises(WrongSecret, match="is empty"):
        resolved("file:dsn", tmp_path, {})

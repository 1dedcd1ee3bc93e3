"""Keys are found where they stand, whatever TOML is around them."""

from __future__ import annotations

from penstock.declared.positions import Place, Positions

TEXT = '''\
# name = "not me"
name = "orders"
"quoted.key" = 1
[spark]
settings = { "spark.x" = 4, inner = { a = [1, 2], b = "}" } }   # { "ghost" = 1 }
python = [
  "one.py",   # , "ghost.py"
  'two.py',
]
[sources.orders]
topic = "a\\"b"
watermark.column = "at"
[[steps]]
name = "first"
sql = """
SELECT [x]
FROM orders = "quoted"
"""
[[steps]]
name = "second"
sql = 'SELECT 1'
[steps.more]
x = 1979-05-27T07:32:00Z
'''


def test_every_key_is_at_its_line_and_column() -> None:
    found = Positions(TEXT)
    assert found.of(("name",)) == Place(2, 1)
    assert found.of(("quoted.key",)) == Place(3, 1)
    assert found.of(("spark",)) == Place(4, 1)
    assert found.of(("spark", "settings", "spark.x")) == Place(5, 14)
    assert found.of(("spark", "settings", "inner", "b")) == Place(5, 51)
    assert found.of(("spark", "python", 1)) == Place(8, 3)
    assert found.of(("sources", "orders", "topic")) == Place(11, 1)
    assert found.of(("sources", "orders", "watermark", "column")) == Place(12, 11)
    assert found.of(("steps", 0, "sql")) == Place(15, 1)
    assert found.of(("steps", 1)) == Place(19, 1)
    assert found.of(("steps", 1, "name")) == Place(20, 1)
    assert found.of(("steps", 1, "more", "x")) == Place(23, 1)


def test_what_is_not_there_is_where_it_would_belong() -> None:
    found = Positions(TEXT)
    assert found.of(("spark", "settings", "nothing")) == Place(5, 1)
    assert found.of(("sources", "orders", "nothing")) == Place(10, 1)
    assert found.of(("nothing", "at", "all")) == Place(1, 1)


def test_a_character_of_a_long_text_has_its_own_line() -> None:
    found = Positions(TEXT)
    sql = 'SELECT [x]\nFROM orders = "quoted"\n'
    assert found.inside(("steps", 0, "sql"), sql, sql.index("orders")) == Place(17, 6)
    assert found.inside(("steps", 0, "sql"), sql, 0) == Place(16, 1)
    assert found.inside(("steps", 1, "sql"), "SELECT 1", 7) == Place(21, 15)


def test_a_table_that_only_others_name_is_where_the_first_of_them_is() -> None:
    positions = Positions('name = "x"\n\n[sinks.lake]\ntable = "t"\n[sinks.other]\n')
    assert (positions.of(("sinks",)), positions.of(("sinks", "other"))) == (Place(3, 1), Place(5, 1))

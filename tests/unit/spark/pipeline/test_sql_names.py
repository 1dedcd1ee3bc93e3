"""What SQL reads from is told from everything else that looks alike."""

from __future__ import annotations

import pytest

from penstock.spark.pipeline.sql_names import Read, names_read


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM orders WHERE x = 'from nowhere'", ["orders"]),
        ("select a from b join c on b.x = c.y, d where a is not distinct from z", ["b", "c", "d"]),
        ("select extract(year from at), trim(both 'x' from s) from q", ["q"]),
        ("WITH t AS (SELECT * FROM orders), u(a) AS (SELECT 1 FROM t) SELECT * FROM t JOIN u", ["orders"]),
        ("FROM orders |> WHERE x > 1 |> JOIN rates ON a", ["orders", "rates"]),
        ("select * from (select * from inner_one) x, range(10) r, catalog.db.t, delta.`/a/b`", ["inner_one"]),
        ("select * from `my table` lateral view explode(xs) as y", ["my table"]),
        ("select window.start from paid group by window(at, '10 minutes'), country", ["paid"]),
        ("select * from a union all select * from b where id in (select id from c)", ["a", "b", "c"]),
        ("select * from a -- from b\n/* from c */ left anti join d using (x, y)", ["a", "d"]),
        ("select * from Orders o join orders p", ["Orders"]),
        ("select 1", []),
        ("VALUES (1), (2)", []),
    ],
)
def test_names(sql: str, names: list[str]) -> None:
    assert [read.name for read in names_read(sql)] == names


def test_a_name_comes_with_its_place() -> None:
    assert names_read("SELECT 1\nFROM x") == [Read("x", 14)]

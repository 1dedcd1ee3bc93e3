"""What a copy consists of, and what of earlier ones may go."""

from __future__ import annotations

import pytest

from penstock.spark.checkpoints.manifest import (
    KEPT,
    PACK_BYTES,
    Manifest,
    Stored,
    Unreadable,
    garbage,
    in_packs,
    manifest_name,
    newest,
    number_of,
    pack_name,
    strays,
)


def test_a_manifest_is_its_json() -> None:
    files = {"offsets/1": Stored("packs/a", 0, 3), "state/0/0/1.zip": Stored("packs/b", 3, 0)}
    made = Manifest(42, "me", "here", 17, "put", files)
    assert Manifest.of_json(made.to_json(), "there") == made
    assert made.packs == {"packs/a", "packs/b"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 2, "number": 1}'])
def test_what_is_no_manifest_is_told_where_it_is(text: str) -> None:
    with pytest.raises(Unreadable, match=r"s3://lake/m"):
        Manifest.of_json(text, "s3://lake/m")


def test_names_have_numbers_that_sort() -> None:
    assert (number_of(manifest_name(7)), number_of(pack_name(8, "x")), number_of("packs/other")) == (7, 8, -1)
    assert (newest([manifest_name(9), manifest_name(10), "manifests/readme"]), newest([])) == (10, 0)
    assert manifest_name(9) < manifest_name(10)


def test_small_files_go_together_and_large_ones_alone() -> None:
    third = PACK_BYTES // 3
    sizes = {"a": third, "b": third, "c": third, "d": 1, "e": PACK_BYTES + 1, "f": 0}
    assert in_packs(sizes) == [["a", "b", "c", "d"], ["e"], ["f"]]
    assert sorted(name for pack in in_packs(sizes) for name in pack) == list("abcdef")
    assert in_packs({}) == []


def test_what_only_old_copies_name_may_go() -> None:
    recent = {1: ["a", "b"], 2: ["b"], 3: ["b", "c"], 4: ["c"], 5: ["d"]}
    assert KEPT == 3
    assert garbage(recent, 5) == ([1, 2], ["a"])
    assert garbage({4: ["c"], 5: ["d"]}, 5) == ([], [])


def test_packs_of_later_copies_are_left_alone() -> None:
    names = [pack_name(number, "x") for number in (3, 4, 5)]
    assert strays(names, 4, {pack_name(3, "x")}) == [pack_name(4, "x")]

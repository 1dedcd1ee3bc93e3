from __future__ import annotations

import pytest

from penstock.model.ids import uuid_parse
from penstock.server.controller.initial_controllers import BadControllers, parse_initial_controllers, voters_of

ONE, TWO = "3Db5QLSqSZieL3rJBUUegA", "L3rJBUUegA3Db5QLSqSZiQ"


def test_the_list_is_the_voter_set() -> None:
    text = f"2@two.example:9093:{TWO}, 1@one.example:9093:{ONE}"
    found = parse_initial_controllers(text)
    assert [str(each) for each in found] == text.split(", ")
    voters = voters_of(found, "CONTROLLER").voters
    assert [(each.voter_id, each.voter_directory_id) for each in voters] == [(1, uuid_parse(ONE)), (2, uuid_parse(TWO))]
    assert [(at.name, at.host, at.port) for at in voters[0].endpoints] == [("CONTROLLER", "one.example", 9093)]
    assert (
        voters[0].kraft_version_feature.min_supported_version,
        voters[0].kraft_version_feature.max_supported_version,
    ) == (
        0,
        1,
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("1@host:9093", "ID@HOST:PORT:DIRECTORY_ID"),
        (f"host:9093:{ONE}", "ID@HOST:PORT:DIRECTORY_ID"),
        ("1@host:9093:short", "ID@HOST:PORT:DIRECTORY_ID"),
        ("1@host:9093:AAAAAAAAAAAAAAAAAAAAAQ", "reserved"),
        (f"1@a:9093:{ONE},1@b:9093:{TWO}", "same node id"),
        (f"1@a:9093:{ONE},2@b:9093:{ONE}", "same directory id"),
        (f"1@a:9093:{ONE},2@a:9093:{TWO}", "same address"),
    ],
)
def test_a_list_that_cannot_be_used_says_why(text: str, why: str) -> None:
    with pytest.raises(BadControllers, match=why):
        parse_initial_controllers(text)

"""RE2 says what it does not like in an error, and nothing beside it."""

from __future__ import annotations

import pytest

from penstock.model.patterns import NotRe2, compile_re2


@pytest.mark.parametrize("pattern", ["orders-(", "(?<=a)b", r"(a)\1", "a{2000}", "[z-a]"])
def test_what_is_no_pattern_is_refused_in_words_and_in_silence(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    for given in (pattern, pattern.encode()):
        with pytest.raises(NotRe2, match=r"^[a-z].*: .*") as refused:
            compile_re2(given)
        assert "b'" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


def test_names_of_groups_have_the_type_of_the_pattern() -> None:
    assert dict(compile_re2("(?P<level>[A-Z]+) (.*)").groupindex) == {"level": 1}
    assert dict(compile_re2(b"(?P<level>[A-Z]+) (.*)").groupindex) == {b"level": 1}
    assert compile_re2("(?P<level>[A-Z]+) (.*)").groups == 2


def test_a_byte_is_a_character_when_that_is_asked_for() -> None:
    assert compile_re2(b"^.$", latin1=True).search(b"\xff")
    assert not compile_re2(b"^.$").search(b"\xff")


def test_an_evil_pattern_takes_its_time_from_the_text_alone() -> None:
    assert not compile_re2("(a*)*b").fullmatch("a" * 100_000)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.config import parse_properties, parse_toml, write_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb", {"a": "b"}),
        ("  a=b", {"a": "b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("#c\n!d\na=1", {"a": "1"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\\\nd=e", {"a": "b\\", "d": "e"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a= b ", {"a": "b "}),
        ("a==b", {"a": "=b"}),
        ("a:=b", {"a": "=b"}),
        ("a=b\\", {"a": "b"}),
        ("a=\\", {"a": ""}),
        ("\\u00e9=x", {"\u00e9": "x"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\\n#c\nd=e", {"a": "b#c", "d": "e"}),
        ("\\#a=1", {"#a": "1"}),
        ("\n\n   \n a=1", {"a": "1"}),
        ("a\fb=c", {"a": "b=c"}),
        ("a=\u00a0b", {"a": "\u00a0b"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a=\u0085b", {"a": "\u0085b"}),
    ],
)
def test_properties_read_as_java_reads_them(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


@pytest.mark.parametrize("text", ["a=\\u00zz", "a=\\u12", "\\u+123=1"])
def test_a_malformed_unicode_escape_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(text)


def test_properties_write_as_java_writes_them() -> None:
    assert write_properties({"a b": "  x y ", "k#!=:": "v#!=:\t\n\r\f\\\u00e9\u0001"}) == (
        "a\\ b=\\  x y \nk\\#\\!\\=\\:=v\\#\\!\\=\\:\\t\\n\\r\\f\\\\\\u00E9\\u0001\n"
    )


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_reads_back(pairs: dict[str, str]) -> None:
    assert parse_properties(write_properties(pairs)) == pairs


def test_toml_names_may_be_quoted_or_nested() -> None:
    text = """
        "log.segment.bytes" = 1_048_576
        "process.roles" = ["broker", "controller"]
        auto.create.topics.enable = false
        [log.cleaner]
        "min.cleanable.ratio" = 0.5
        threads = 2
    """
    assert parse_toml(text) == {
        "log.segment.bytes": "1048576",
        "process.roles": "broker,controller",
        "auto.create.topics.enable": "false",
        "log.cleaner.min.cleanable.ratio": "0.5",
        "log.cleaner.threads": "2",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"a.b" = 1\n[a]\nb = 2', "a.b is given twice"),
        ("a = 1979-05-27", "a: a value must be"),
        ("a = [{b = 1}]", "a: a value must be"),
        ("a =", "Invalid value"),
    ],
)
def test_toml_that_makes_no_properties_is_told(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_toml(text)

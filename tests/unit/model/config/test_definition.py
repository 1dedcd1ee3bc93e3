import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.config import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, ConfigType, value_text
from penstock.model.config.definition import double_text, parse_value
from penstock.model.config.validators import duration_ms
from penstock.model.errors import INVALID_CONFIG, Refused
from penstock.model.secret import Secret


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (" TRUE ", ConfigType.BOOLEAN, True),
        ("False", ConfigType.BOOLEAN, False),
        (" a b ", ConfigType.STRING, "a b"),
        ("\u00a0a\u00a0", ConfigType.STRING, "\u00a0a\u00a0"),
        ("+5", ConfigType.INT, 5),
        ("-0", ConfigType.INT, 0),
        ("\u0663", ConfigType.LONG, 3),
        ("2147483647", ConfigType.INT, 2147483647),
        ("-32768", ConfigType.SHORT, -32768),
        (" 1e3", ConfigType.DOUBLE, 1000.0),
        ("-1.e3d", ConfigType.DOUBLE, -1000.0),
        (".25f", ConfigType.DOUBLE, 0.25),
        ("Infinity", ConfigType.DOUBLE, float("inf")),
        (" a , b,,c ", ConfigType.LIST, ("a", "b", "", "c")),
        (" ", ConfigType.LIST, ()),
        (",", ConfigType.LIST, ("", "")),
        (" pw ", ConfigType.PASSWORD, Secret("pw")),
        ("a.b.C", ConfigType.CLASS, "a.b.C"),
    ],
)
def test_text_means_what_it_means_to_kafka(text: str, kind: ConfigType, value: object) -> None:
    assert parse_value(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("yes", ConfigType.BOOLEAN),
        ("", ConfigType.BOOLEAN),
        ("1_000", ConfigType.LONG),
        ("1L", ConfigType.LONG),
        ("1.0", ConfigType.INT),
        ("- 5", ConfigType.INT),
        ("2147483648", ConfigType.INT),
        ("32768", ConfigType.SHORT),
        ("inf", ConfigType.DOUBLE),
        ("1_0.0", ConfigType.DOUBLE),
        ("\u0663.0", ConfigType.DOUBLE),
        ("", ConfigType.DOUBLE),
    ],
)
def test_what_java_cannot_read_is_no_value(text: str, kind: ConfigType) -> None:
    with pytest.raises(ValueError, match=r"expected|not a number"):
        parse_value(text, kind)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1e-5, "1.0E-5"),
        (9.9e-4, "9.9E-4"),
        (0.001, "0.001"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-2.5e10, "-2.5E10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_print_as_java_prints_them(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_double_reads_back(value: float) -> None:
    assert parse_value(double_text(value), ConfigType.DOUBLE) == value


def test_values_print_as_describe_configs_shows_them() -> None:
    printed = [value_text(one) for one in (True, 7, ("a", "b"), (), "text", None, Secret("x"))]
    assert printed == ["true", "7", "a,b", "", "text", None, "[hidden]"]


def refusal(table: object, name: str, text: str) -> str:
    assert isinstance(table, dict)
    with pytest.raises(Refused) as caught:
        table[name].parse(text)
    assert caught.value.error is INVALID_CONFIG
    return caught.value.why


def test_a_refusal_names_the_property_the_value_and_the_bounds() -> None:
    assert refusal(TOPIC_CONFIGS, "segment.bytes", "100") == (
        "Invalid value 100 for configuration segment.bytes: it must be at least 1048576"
    )
    assert "at most 1" in refusal(TOPIC_CONFIGS, "min.cleanable.dirty.ratio", "1.5")
    assert "one of uncompressed" in refusal(TOPIC_CONFIGS, "compression.type", "brotli")
    assert "1 to 9, or -1" in refusal(TOPIC_CONFIGS, "compression.gzip.level", "0")
    assert "DELETE is not one of compact, delete" in refusal(TOPIC_CONFIGS, "cleanup.policy", "DELETE")
    assert "empty entries" in refusal(TOPIC_CONFIGS, "cleanup.policy", "delete,")
    assert "must not be empty" in refusal(BROKER_CONFIGS, "listeners", "")
    assert "must not be empty" in refusal(BROKER_CONFIGS, "remote.log.storage.manager.class.name", "")
    assert "id@host:port" in refusal(BROKER_CONFIGS, "controller.quorum.voters", "1@h")
    assert "host:port" in refusal(BROKER_CONFIGS, "controller.quorum.bootstrap.servers", "abc")
    assert "partition:broker" in refusal(TOPIC_CONFIGS, "leader.replication.throttled.replicas", "*,0:1")
    assert "in any case" in refusal(BROKER_CONFIGS, "group.consumer.migration.policy", "x")


def test_checked_lists_lose_repeated_entries_and_others_keep_them() -> None:
    assert TOPIC_CONFIGS["cleanup.policy"].parse("compact,compact") == ("compact",)
    assert TOPIC_CONFIGS["leader.replication.throttled.replicas"].parse("0:1,0:1") == ("0:1", "0:1")


def test_words_in_any_case_keep_their_spelling() -> None:
    assert BROKER_CONFIGS["group.consumer.migration.policy"].parse("UpGrade") == "UpGrade"


def test_a_secret_never_prints() -> None:
    secret = BROKER_CONFIGS["ssl.key.password"].parse("swordfish")
    assert secret == Secret("swordfish")
    assert "swordfish" not in f"{secret} {secret!r}"


@pytest.mark.parametrize("text", ["earliest", "latest", "by_duration:PT1H", "by_duration:pt1h", "by_duration:P-1DT48H"])
def test_share_groups_begin_where_kafka_lets_them(text: str) -> None:
    assert GROUP_CONFIGS["share.auto.offset.reset"].parse(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "Earliest",
        "BY_DURATION:PT1H",
        "by_duration:",
        "by_duration:P1Y",
        "by_duration:P1DT",
        "by_duration:-PT1H",
    ],
)
def test_share_groups_begin_nowhere_else(text: str) -> None:
    assert "by_duration" in refusal(GROUP_CONFIGS, "share.auto.offset.reset", text)


def test_durations_in_milliseconds() -> None:
    durations = ["P1DT2H", "PT1.5S", "PT-1.5S", "-PT1M", "PT0S", "P", "PT", "1D"]
    assert [duration_ms(one) for one in durations] == [93_600_000, 1_500, -1_500, -60_000, 0, None, None, None]

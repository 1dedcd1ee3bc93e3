"""An agent's file: what it says, and everything that is wrong with it in its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.agent.errors import AgentFileBroken
from penstock.agent.settings import Examined, OutputSettings, SpoolSettings, examine, read_agent

FILE = Path("/etc/penstock/agent.toml")
STDIN = '[inputs.in]\ntype = "stdin"\ntopic = "lines"\n'


def examined(text: str, **environ: str) -> Examined:
    return examine(text, FILE, environ)


def mistakes(text: str, **environ: str) -> list[str]:
    return [mistake.at("f") for mistake in examined(text, **environ).mistakes]


def test_a_short_file_has_defaults_for_the_rest() -> None:
    found = examined('name = "web-1"\n' + STDIN).settings
    assert found is not None
    assert found.bootstrap == "localhost:9092"
    assert found.state_dir == Path("/etc/penstock/.penstock-agent/web-1")
    assert found.admin == "127.0.0.1:0"
    assert found.client_id == "agent-web-1"
    assert found.output == OutputSettings()
    assert found.spool is None
    assert found.inputs["in"].kind == "stdin"


def test_a_long_file_is_taken_at_its_word() -> None:
    text = """
name = "web-1"
bootstrap = "a:1,b:2"
state_dir = "state"
host = "web-1.example.org"
admin = "off"
[output]
acks = "all"
compression = "zstd"
linger = "5ms"
memory = "128 MB"
create_topics = false
flush_within = "1m"
kafka = { "request.timeout.ms" = 10000, "max.request.size" = "2000000" }
[spool]
size = "2 GB"
path = "kept"
after = "10s"
[inputs.net]
type = "syslog"
topic = "syslog"
listen = "127.0.0.1:0"
"""
    found = examined(text).settings
    assert found is not None, mistakes(text)
    assert (found.bootstrap, found.host, found.admin) == ("a:1,b:2", "web-1.example.org", None)
    assert found.output == OutputSettings(
        "all", "zstd", 5, 128 << 20, False, 60_000, {"request.timeout.ms": "10000", "max.request.size": "2000000"}
    )
    assert found.spool == SpoolSettings(Path("/etc/penstock/state/kept"), 2 << 30, 10_000)


def test_every_mistake_is_told_at_once_and_in_its_place() -> None:
    text = """nam = "x"
admin = "nowhere"
[output]
memory = "5 KB"
acks = 0
kafka = { acks = 1, "requst.timeout.ms" = 5, "request.timeout.ms" = "x" }
[spool]
siz = 1
[inputs.a]
type = "tial"
[inputs.b]
[inputs.c]
type = "stdin"
topic = "t"
tpoic = "t"
"""
    found = mistakes(text)
    for wanted in (
        "f:1:1: 'nam' means nothing in the file; did you mean 'name'?",
        "f:1:1: the file has no name",
        "f:2:1: admin = 'nowhere' is no address",
        "f:4:1: memory = '5 KB' is out of bounds: it must be from 1 MB to 1024 GB",
        "f:5:1: acks = 0 cannot be",
        "f:6:11: acks is not set here: that is output.acks",
        "f:6:21: there is no setting 'requst.timeout.ms'; did you mean",
        "f:6:46: request.timeout.ms='x': expected a whole number",
        "f:8:1: 'siz' means nothing in spool; did you mean 'size'?",
        "f:10:1: type = 'tial' is not known; did you mean 'tail'?",
        "f:11:1: inputs.b has no type",
        "f:15:1: 'tpoic' means nothing in inputs.c; did you mean 'topic'?",
    ):
        assert any(line.startswith(wanted) for line in found), (wanted, found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = = 1", "f:1:8: this is not TOML"),
        ('name = "x"\n', "the file has no inputs: write [inputs.NAME]"),
        ('name = "a b"\n' + STDIN, "name = 'a b' must be made of letters, digits"),
        ('name = "x"\nbootstrap = "host:port"\n' + STDIN, "bootstrap: 'host:port' is no address"),
        ('name = "x"\n' + STDIN.replace("inputs.in", 'inputs."../up"'), "the name of an input must be made of"),
        ('name = "x"\n[[transforms]]\nprase = "json"\n' + STDIN, "did you mean 'parse'?"),
        ('name = "x"\n[[transforms]]\nprase = "json"\n[inputs.a]\ntype = "?"\n', "did you mean 'parse'?"),
    ],
)
def test_a_mistake(text: str, words: str) -> None:
    assert any(words in line for line in mistakes(text)), mistakes(text)


def test_variables_are_filled_in_everywhere() -> None:
    text = 'name = "${SITE}-${ROLE:-web}"\nhost = "$${HOST}"\n[output]\nmemory = "${MEMORY}"\n' + STDIN
    found = examined(text, SITE="fra", MEMORY="32 MB", ROLE="").settings
    assert found is not None
    assert (found.name, found.host, found.output.memory_bytes) == ("fra-web", "${HOST}", 32 << 20)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x${NOPE}", "f:1:10: the environment has no NOPE; ${NOPE:-…} gives it a default"),
        ("${1X}", "f:1:9: ${1X} is no variable: write ${NAME} or ${NAME:-default}"),
        ("${open", "f:1:9: ${ is never closed; write $${ if it is no variable"),
    ],
)
def test_a_variable_that_is_not_there_is_told_in_its_place(value: str, words: str) -> None:
    assert words in mistakes(f'host = "{value}"\nname = "x"\n' + STDIN)


def test_warnings_do_not_stop_it(tmp_path: Path) -> None:
    lossy = '[inputs.in]\ntype = "exec"\ncommand = ["true"]\ntopic = "lines"\n'
    found = examine('name = "x"\n[output]\nacks = "1"\n[spool]\n' + lossy, tmp_path / "agent.toml", {})
    assert found.settings is not None, found.mistakes
    told = " ".join(f"{warning.line}: {warning.words}" for warning in found.warnings)
    for words in ("3: acks", "4: no input uses the spool", "6: exec inputs are lossy"):
        assert words in told


def test_a_digest_tells_whether_an_input_behaves_the_same() -> None:
    whole = 'name = "x"\n' + STDIN + "[inputs.other]\n" + STDIN.split("\n", 1)[1]
    found = examined(whole).settings
    same = examined("# a comment\n" + whole.replace('"x"', '"x" ')).settings
    changed = examined(whole.replace('"lines"', '"rows"', 1)).settings
    shared = examined(whole + "[[transforms]]\nadd = { a = 1 }\n").settings
    assert found is not None and same is not None and changed is not None and shared is not None  # noqa: PT018
    assert same.inputs["in"].digest == found.inputs["in"].digest
    assert changed.inputs["in"].digest != found.inputs["in"].digest
    assert changed.inputs["other"].digest == found.inputs["other"].digest
    assert shared.inputs["other"].digest != found.inputs["other"].digest


def test_a_file_on_disk_is_read_or_all_its_mistakes_are_raised(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text('name = "x"\n' + STDIN)
    settings = read_agent(path)
    assert settings.path == path
    assert replace(settings, bootstrap="there:1").bootstrap == "there:1"
    path.write_text("nme = 1\n")
    with pytest.raises(AgentFileBroken, match="did you mean 'name'") as broken:
        read_agent(path)
    assert len(broken.value.mistakes) == 3


SECURED = """\
name = "a"
bootstrap = "far:9093"
[output]
kafka = {{ {kafka} }}
{more}
[inputs.a]
type = "stdin"
topic = "t"
"""


def test_brokers_with_tls_and_logins_are_named_as_to_any_client(tmp_path: Path) -> None:
    from penstock.agent.settings.producing import keywords_of
    from penstock.client.settings import ProducerSettings

    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.truststore.location=/etc/ca.pem\n")
    for kafka, more, protocol in (
        ('username = "alice", password = "${PASSWORD}"', "", "SASL_SSL"),
        ('"security.protocol" = "SSL", "ssl.truststore.location" = "/etc/ca.pem"', "", "SSL"),
        ("", f'client_config = "{file}"', "SSL"),
    ):
        text = SECURED.format(kafka=kafka, more=more)
        found = examined(text, PASSWORD="s3cret").settings
        assert found is not None, mistakes(text, PASSWORD="s3cret")
        assert ProducerSettings.of(keywords_of(found)).security_protocol == protocol
        assert "s3cret" not in repr(found)


def test_security_that_does_not_fit_together_is_told() -> None:
    for kafka, more, words in (
        ('username = "alice"', "", "there is no password"),
        ('"sasl.jaas.config" = "x"', "", "needs security_protocol"),
        ("", 'client_config = "/nowhere/c"', "no such file"),
    ):
        assert any(words in each for each in mistakes(SECURED.format(kafka=kafka, more=more)))


EXACTLY = 'name = "web-1"\nexactly_once = true\nmachine_id = "host-1"\n'


def test_exactly_once_stands_at_the_top_of_the_file() -> None:
    found = examined(EXACTLY + STDIN)
    assert found.settings is not None
    assert (found.settings.exactly_once, found.settings.machine_id) == (True, "host-1")
    plain = examined('name = "web-1"\n' + STDIN).settings
    assert plain is not None
    assert (plain.exactly_once, plain.machine_id) == (False, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (EXACTLY.replace("true", '"yes"') + STDIN, "f:2:1: exactly_once must be true or false"),
        (EXACTLY + '[output]\nacks = "1"\n' + STDIN, 'f:2:1: exactly_once = true needs acks = "all" in [output]'),
        (
            EXACTLY + '[output]\nkafka = { "max.in.flight.requests.per.connection" = 6 }\n' + STDIN,
            "f:2:1: exactly_once = true does not go with output.kafka: transactions need max_in_flight of at most 5",
        ),
        (EXACTLY.replace("host-1", "a b") + STDIN, "f:3:1: machine_id = 'a b' must be made of letters"),
        (
            'name = "web-1"\n[output]\nexactly_once = true\n' + STDIN,
            "f:3:1: exactly_once is not set here: it stands at the top of the file",
        ),
        (
            'name = "web-1"\n[output]\nkafka = { "transactional.id" = "mine" }\n' + STDIN,
            "transactional.id is not set here: that is exactly_once, at the top of the file",
        ),
    ],
)
def test_what_does_not_go_with_exactly_once_is_told_in_its_place(text: str, told: str) -> None:
    found = mistakes(text)
    assert len(found) == 1, found
    assert told in found[0]


def test_a_machine_id_that_nobody_asks_for_is_told() -> None:
    found = examined('name = "web-1"\nmachine_id = "host-1"\n' + STDIN)
    assert any("machine_id is for exactly_once" in each.words for each in found.warnings)

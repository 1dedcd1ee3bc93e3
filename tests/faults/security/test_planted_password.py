"""A password that is like no other goes through everything, and is looked for everywhere afterwards.

It may be in the files that hold it for its owner, mode 600, and in the environment of a command that was given it so.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import stat
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.dev_processes import NodeProcess, kill
from penstock.model.config import parse_properties
from tests.cli.command import QUICK_JAVA, Running, Said, penstock
from tests.compat.processes import wait_for
from tests.faults.counts import SOAKING
from tests.patience import within

CORE = "plantedZwergQuetsche4711"
PLANTED = f"{CORE};ß =\\y"
"""The core is what is looked for: whatever quotes the rest, it stays. Its neighbours need quoting everywhere."""
WRONG = "plantedAlsoWrongKumquat0815"
FLOW = """
name = "planted"
warehouse = "{warehouse}"
[sources.lines]
topic = "orders"
start = "earliest"
[sinks.table]
from = "lines"
table = "lines"
[sinks.copies]
from = "lines"
topic = "copies"
[sources.ages]
topic = "orders"
start = "earliest"
format = "json"
schema = "age int"
dead_letters = "topic:dead"
[sinks.ages]
from = "ages"
table = "ages"
[spark.settings]
"spark.eventLog.enabled" = "true"
"spark.eventLog.dir" = "{events}"
"spark.log.level" = "INFO"
"""
TELLING = """
name = "telling"
bootstrap = "{bootstrap}"
[inputs.environment]
type = "exec"
command = ["sh", "-c", "echo told: $(env)"]
restart = "never"
topic = "told"
"""
"""An agent that was given its password by the environment, and starts a program that shows what it inherited."""


def traces_of(secret: str) -> list[bytes]:
    """A secret as it is, and as the usual encodings of a text that it stands in would have it."""
    plain = secret.encode()
    found = [plain, plain.hex().encode(), plain.hex().upper().encode(), secret.encode("utf-16-le"), plain[::-1]]
    found.append(urllib.parse.quote(secret).encode())
    for offset in range(3):
        # What stands before and after changes the first and last letters of base64, and no other.
        encoded = base64.b64encode(bytes(offset) + plain)
        found.append(encoded[-(-offset * 8 // 6) + (1 if offset else 0) : len(plain) * 8 // 6 - 3])
    return found


class Secrets:
    """What is looked for: the admin's password, a user's, and one that was wrong."""

    def __init__(self, *secrets: str) -> None:
        self._traces = [trace for secret in secrets for trace in traces_of(secret)]
        assert min(map(len, self._traces)) > 12, "a shorter trace would be found by chance"

    def in_text(self, text: str | bytes) -> bool:
        data = text.encode(errors="surrogateescape") if isinstance(text, str) else text
        return any(trace in data for trace in self._traces)

    def in_files(self, folder: Path) -> set[Path]:
        return {path for path in folder.rglob("*") if path.is_file() and self.in_text(path.read_bytes())}


class World:
    """A secured node under `.penstock` of a folder, and everything that anybody said about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / ".penstock"
        self.bootstrap = ""
        self.said: list[str] = []

    def run(self, *arguments: str | Path, stdin: str = "", code: int = 0, **environment: str) -> Said:
        said = penstock(*arguments, "-b", self.bootstrap, stdin=stdin, cwd=self.folder, environment=environment)
        self.said += [said.out, said.err]
        assert said.code == code, said.err
        return said

    def config_file(self, user: str, password: str) -> Path:
        """As users write them; backslashes are doubled twice, for properties and for JAAS."""
        escaped = password.replace("\\", "\\\\\\\\")
        path = self.folder / f"{user}.properties"
        path.touch(mode=0o600)
        path.write_text(
            "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={self.data}/security/ca.pem\nsasl.mechanism=SCRAM-SHA-512\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{user}" password="{escaped}";\n'
        )
        return path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME", "TMPDIR"):
        place = tmp_path / "homes" / name.lower()
        place.mkdir(parents=True)
        monkeypatch.setenv(name, str(place))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
    world = World(tmp_path)
    yield world
    kill(NodeProcess(world.data, 1))


def processes() -> Iterator[tuple[int, str, bytes]]:
    """Pid, kind and content of every process's arguments and environment, as far as they may be read."""
    for folder in Path("/proc").iterdir():
        for kind in ("cmdline", "environ") if folder.name.isdigit() else ():
            try:
                yield int(folder.name), kind, (folder / kind).read_bytes()
            except OSError:
                continue  # it ended meanwhile, or is not ours to read


def assert_unseen(secrets: Secrets, *given: int) -> None:
    """No process has a secret in its arguments or environment, but for the environments of those that got it so."""
    for pid, kind, content in processes():
        if kind == "cmdline" or pid not in given:
            assert not secrets.in_text(content), f"{kind} of process {pid} has a password"


def pages_of(dev: Running) -> Iterator[str]:
    address = dev.wait_to_say(r"metrics\s+(http://\S+)/metrics")[1]
    for page in ("metrics", "readyz", "healthz"):
        with urllib.request.urlopen(f"{address}/{page}", timeout=within(10)) as answer:
            yield answer.read().decode()


def use(world: World, dev: Running) -> Secrets:
    """A user from nothing to records that an agent brought, with a wrong password and a refusal on the way."""
    world.bootstrap = dev.wait_to_say(r"bootstrap\s+(\S+)")[1]
    dev.wait_to_say("try")
    jaas = parse_properties((world.data / "security" / "admin.properties").read_text())["sasl.jaas.config"]
    admins = re.search(r'password="([^"]+)"', jaas)
    assert admins is not None
    secrets = Secrets(CORE, WRONG, admins[1])

    world.run("user", "add", "ada", "--password-stdin", stdin=f"{WRONG}\n")
    world.run("user", "passwd", "ada", "--password-stdin", stdin=f"{PLANTED}\n")
    world.run("topic", "create", "orders", "-p", "2")
    for topic in ("copies", "told"):
        world.run("topic", "create", topic, "-p", "1")
    world.run("acl", "allow", "ada", "all", "topic:*")
    world.run("acl", "allow", "ada", "all", "group:*")
    config = world.config_file("ada", PLANTED)
    world.run("token", "create", "--client-config", config)

    # With the file, with the environment, and with a password that is not taken.
    world.run("produce", "orders", "-v", "-v", "--client-config", config, stdin="one\ntwo\n")
    by_environment = ("-X", "username=ada", "-X", f"cafile={world.data}/security/ca.pem")
    world.run("produce", "orders", *by_environment, stdin="three\n", PENSTOCK_PASSWORD=PLANTED)
    world.run("topic", "list", "--client-config", world.config_file("wrong", WRONG), code=4)
    world.run("topic", "list", *by_environment, PENSTOCK_PASSWORD=WRONG, code=4)
    world.run("user", "list", "--client-config", config, code=4)
    world.run("profile", "create", "ada", "--no-use", "--client-config", config)

    lines = world.folder / "lines.log"
    lines.write_text("four\nfive\n")
    agent = Running(
        *("agent", "run", "--tail", lines, "--topic", "orders", "-b", world.bootstrap, "--client-config", config),
        *("--state-dir", world.folder / "agent-state", "--log-level", "debug"),
        log=world.folder / "agent.log",
    )
    with agent:
        read = world.run("consume", "orders", "-o", "start", "-n", "5", "-f", "text", "--client-config", config)
        assert sorted(read.out.split()) == ["five", "four", "one", "three", "two"]
        world.said += pages_of(dev)
        assert_unseen(secrets)
        assert agent.stop(signal.SIGTERM) == 0
    world.said.append(agent.words)
    tell_what_is_inherited(world, config)
    return secrets


def tell_what_is_inherited(world: World, config: Path) -> None:
    """Programs that an agent starts are not given its password: what they say goes into topics."""
    file = world.folder / "telling.toml"
    file.write_text(TELLING.format(bootstrap=world.bootstrap))
    agent = Running(
        *("agent", "run", "-c", file, "-X", "username=ada", "-X", f"cafile={world.data}/security/ca.pem"),
        *("--state-dir", world.folder / "telling-state"),
        log=world.folder / "telling.log",
        environment={"PENSTOCK_PASSWORD": PLANTED},
    )
    with agent:
        told = world.run("consume", "told", "-n", "1", "-f", "text", "--client-config", config)
        assert re.search(r"told: .*PATH=", told.out)
        wait_for("the agent's end, as there is nothing more to tell", lambda: not agent.running, timeout_s=30)
    world.said.append(agent.words)


def look_from_inside(world: World) -> None:
    """All that an administrator can have shown: configurations, users, tokens and findings."""
    world.run("cluster", "config", "list", "--broker", "1")
    world.run("user", "list", "--format", "json")
    world.run("token", "list", "--format", "json")
    for command in (("profile", "show", "ada"), ("doctor", "-b", world.bootstrap)):
        said = penstock(*command, cwd=world.folder)
        assert said.out
        world.said += [said.out, said.err]


def run_pipeline(world: World, secrets: Secrets) -> None:
    """By a file, and by the environment of its command; Spark tells its event log all that it knows."""
    flow, events, lake = world.folder / "flow.toml", world.folder / "events", world.folder / "lake"
    flow.write_text(FLOW.format(warehouse=lake, events=events))
    events.mkdir()
    world.run("topic", "create", "dead", "-p", "1")
    by_file = ("--client-config", world.folder / "ada.properties")
    by_environment = ("-X", "username=ada", "-X", f"cafile={world.data}/security/ca.pem")
    run = ("pipeline", "run", flow, "--once", "-b", world.bootstrap, "--format", "json")
    for number, login in enumerate((by_file, by_environment)):
        given = {} if login is by_file else {"PENSTOCK_PASSWORD": PLANTED}
        log = world.folder / f"pipeline-{number}.log"
        with Running(*run, *login, log=log, environment=given) as pipeline:

            def ended(pipeline: Running = pipeline) -> bool:
                assert_unseen(secrets, pipeline.pid)
                return not pipeline.running

            wait_for("the end of the pipeline", ended, timeout_s=200)
            assert json.loads(pipeline.words.splitlines()[-1])["state"] == "finished", pipeline.words
        world.said.append(log.read_text())
        world.run("produce", "orders", *by_file, stdin="not json\n")
    assert list(lake.rglob("*.parquet"))
    assert [path for path in events.rglob("*") if path.is_file() and path.stat().st_size > 10_000]
    world.run("consume", "dead", "-o", "start", "-n", "5", *by_file)
    world.run("pipeline", "list")
    world.run("pipeline", "status", "planted", "--format", "json", *by_file)


@pytest.mark.timeout(600)
def test_no_password_is_left_anywhere(world: World) -> None:
    """With Spark in a soak only: its start alone would cost more than all the rest."""
    log = world.folder / "dev.log"
    audit = world.folder / "audit.log"
    told = ("allowed=true", "topic.enable=true", f"log.file={audit}")
    options = ("--port", "0", "--data-dir", world.data, "--log-level", "debug")
    options += tuple(word for each in told for word in ("-c", f"penstock.audit.{each}"))
    with Running("dev", "--secure", *options, log=log) as dev:
        secrets = use(world, dev)
        look_from_inside(world)
        if SOAKING:
            run_pipeline(world, secrets)
        assert dev.stop(signal.SIGINT) == 0

    for path in (log, audit):
        assert path.stat().st_size > 1_000, "a log that says nothing holds nothing"
    assert any(path.stat().st_size for path in world.data.rglob("__penstock_audit-0/*.log"))
    assert [text for text in world.said if secrets.in_text(text)] == []
    security = world.data / "security"
    held = {security / "admin.properties", security / "admin.librdkafka"}
    held |= {world.folder / "ada.properties", world.folder / "wrong.properties"}
    found = secrets.in_files(world.folder)
    assert found == held
    assert {stat.S_IMODE(path.stat().st_mode) for path in held} == {0o600}


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_what_is_planted_is_found_in_whatever_it_is_wrapped_in(before: str) -> None:
    """The judge itself: it would otherwise pass by being blind."""
    secrets, text = Secrets(CORE), f"{before}{PLANTED}"
    for wrapped in (
        text.encode(),
        base64.b64encode(text.encode()),
        json.dumps({"jaas": text}).encode(),
        text.encode().hex().encode(),
        urllib.parse.quote(text).encode(),
        os.fsencode(f"--password={text}"),
    ):
        assert secrets.in_text(wrapped), wrapped
    assert not secrets.in_text("planted Zwerg Quetsche 4711")

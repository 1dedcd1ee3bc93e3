"""What the pages say is what happens: commands are run, examples are run, lists are complete, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.cli.reference import reference_page
from penstock.testing import broker
from tests.docs.pages import IN_CHINESE, NOT_RUN, ROOT, blocks, matches, pages, steps
from tests.docs.session import Reader
from tests.patience import within


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_commands() -> list[Path]:
    return [page for page in pages() if any(b.kind == "console" and b.label != NOT_RUN for b in blocks(page))]


@pytest.mark.parametrize("page", with_commands(), ids=named)
def test_every_command_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        for block in blocks(page):
            if block.kind == "console":
                if block.label != NOT_RUN:
                    for step in steps(block):
                        reader.run(step, block.label)
            elif block.label:
                reader.write(block.label, block.text)
        reader.leave()


@pytest.mark.parametrize(
    "page",
    [page for page in pages() if any(block.kind == "python" and block.label != NOT_RUN for block in blocks(page))],
    ids=named,
)
def test_every_python_example_runs(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.kind == "python" and block.label != NOT_RUN:
            assert block.label.endswith(".py"), f"the example needs a file name:\n{block.text}"
            (tmp_path / block.label).write_text(block.text)
            if not block.label.startswith("test_"):
                subprocess.run([sys.executable, block.label], cwd=tmp_path, check=True, timeout=within(60))
        elif block.kind == "toml" and block.label not in ("", NOT_RUN):
            (tmp_path / block.label).write_text(block.text)
    if not list(tmp_path.glob("test_*.py")):
        return
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(pytest_command, cwd=tmp_path, capture_output=True, text=True, timeout=within(100))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [*pages(), IN_CHINESE, *sorted((ROOT / "examples").rglob("README.md"))], ids=named)
def test_nobody_is_sent_to_the_project_that_has_our_name_on_pypi(page: Path) -> None:
    """A bare name finds it. Extras of it are added to the wheel that is installed, and only prose tells of them."""
    text = page.read_text()
    commands = re.findall(r"^\$ (.*pip install.*)$", text, re.MULTILINE)
    assert [command for command in commands if re.search(r"install (\S+ )*'?penstock\b", command)] == []
    assert not re.search(r"pip install penstock\b", text)


@pytest.mark.parametrize("page", [*pages(), IN_CHINESE], ids=named)
def test_links_to_other_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_readme_says_the_same_in_chinese() -> None:
    """The same blocks but for their remarks, the same links, as many headings."""

    def skeleton(page: Path) -> tuple[object, ...]:
        plain = [(each.kind, each.label, re.sub(r"# .*", "#", each.text)) for each in blocks(page)]
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        links = {link for link in re.findall(r"\]\(([^)]+)\)", prose) if not link.startswith("README")}
        return plain, links, len(re.findall(r"^#+ ", prose, re.MULTILINE)), len(re.findall(r"^\|", prose, re.MULTILINE))

    assert skeleton(IN_CHINESE) == skeleton(ROOT / "README.md")


def test_the_command_reference_is_what_the_commands_print() -> None:
    page = ROOT / "docs" / "reference" / "cli.md"
    assert page.read_text() == reference_page(), "run: make docs"


def test_the_list_of_metrics_is_complete(tmp_path: Path) -> None:
    documented = set(
        re.findall(r"^\| `((?:kafka|penstock|process|jvm)_\w+)`", (ROOT / "docs/guides/metrics.md").read_text(), re.M)
    )
    settings = {
        "queued.max.request.bytes": 1 << 30,
        "penstock.audit.log.file": tmp_path / "audit.log",
        "penstock.audit.topic.enable": True,
        "penstock.admin.bearer.token": "scraper",
    }
    with broker(settings, secure=True) as running:
        login = {**running.librdkafka_settings, "log_level": 0}
        producer = Producer(login)
        producer.produce("t", b"x")
        assert producer.flush(within(30)) == 0
        consumer = Consumer({**login, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        consumer.close()
        for wrong in ({"sasl.password": "wrong"}, {"security.protocol": "sasl_plaintext"}):
            with pytest.raises(KafkaException):
                AdminClient({**login, **wrong}).list_topics(timeout=2)
        page = urllib.request.Request(f"{running.admin_url}/metrics", headers={"Authorization": "Bearer scraper"})
        with urllib.request.urlopen(page, timeout=within(10)) as reply:
            served = set(re.findall(r"^# TYPE (\S+)", reply.read().decode(), re.M))
    # A broker inside a test has one loop; tests/faults/test_hanging_disk.py asks a server for that of its second.
    assert documented == served | {"penstock_control_loop_lag_ms"}


@pytest.mark.parametrize(
    ("expected", "printed", "good"),
    [
        ([], "anything\n", True),
        (["a", "b"], "a\nb\n", True),
        (["a"], "a\nb\n", False),
        (["a (id …)"], "a (id 7)\n", True),
        (["a (id …)"], "a (id 7\n)\n", False),
        (["a", "…", "z"], "a\nb\nc\nz\n", True),
        (["…", "z"], "z\n", True),
        (["…"], "", True),
        (["a.c"], "abc\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(expected: list[str], printed: str, good: bool) -> None:
    assert matches(expected, printed) is good

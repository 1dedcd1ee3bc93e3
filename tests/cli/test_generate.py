"""`penstock generate`: what it prints is understood by those it is for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from penstock.agent.admin.metrics import names
from tests.cli.command import penstock
from tests.patience import within

ROOT = Path(__file__).resolve().parents[2]


def directives(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in re.findall(r"^([A-Za-z]+)=(.*)$", text, re.M)]


def test_the_unit_of_an_agent_says_when_it_is_ready_and_reloads() -> None:
    said = penstock("generate", "systemd", "agent", "--program", "/usr/bin/penstock", "--user", "logs")
    assert said.code == 0
    found = directives(said.out)
    file = "/etc/penstock/agent.toml"
    for wanted in (
        ("Type", "notify"),
        ("ExecStartPre", f"/usr/bin/penstock agent validate -c {file}"),
        ("ExecStart", f"/usr/bin/penstock agent run -c {file} --state-dir ${{STATE_DIRECTORY}} --quiet"),
        ("ExecReload", "/bin/kill -HUP $MAINPID"),
        ("StateDirectory", "penstock-agent"),
        ("Restart", "always"),
        ("EnvironmentFile", "-/etc/default/penstock"),
        ("User", "logs"),
        ("NoNewPrivileges", "yes"),
        ("WantedBy", "multi-user.target"),
    ):
        assert wanted in found
    assert any(name == "LimitNOFILE" for name, _ in found)
    assert "systemctl enable --now penstock-agent" in said.err


def test_the_unit_of_a_server_does_not_reload_because_a_server_does_not() -> None:
    said = penstock("generate", "systemd", "server", "--write", "/data/a", "--write", "/data/with space")
    found = directives(said.out)
    assert ("Type", "exec") in found
    assert "ExecReload" not in dict(found)
    assert [value for name, value in found if name == "ReadWritePaths"] == ["/data/a", '"/data/with space"']


def test_a_path_with_spaces_and_dollars_stays_one_word() -> None:
    said = penstock("generate", "systemd", "--file", "/etc/a b/$x%i.toml", "--program", "/p")
    assert 'ExecStart=/p agent run -c "/etc/a b/$$x%%i.toml"' in said.out


@pytest.mark.parametrize("wrong", [("--file", "agent.toml"), ("--user", "a b"), ("--write", "x\ny")])
def test_what_systemd_would_not_take_is_a_mistake(wrong: tuple[str, str]) -> None:
    assert penstock("generate", "systemd", *wrong).code == 2


@pytest.mark.parametrize("service", ["agent", "server"])
def test_systemd_has_nothing_to_say_about_a_unit(service: str, tmp_path: Path) -> None:
    unit = tmp_path / f"penstock-{service}.service"
    program = Path(sys.executable).with_name("penstock")
    unit.write_text(penstock("generate", "systemd", service, "--program", program).out)
    if shutil.which("systemd-analyze") is None:
        assert unit.read_text().count("\n[") == 2, "three sections: there is no systemd to ask"
        return
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=within(60))
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


def test_prometheus_scrapes_what_it_is_told_and_this_machine_by_itself() -> None:
    jobs = yaml.safe_load(penstock("generate", "prometheus", "--agent", "a:1", "--agent", "[::1]:2").out)[
        "scrape_configs"
    ]
    assert jobs == [{"job_name": "penstock-agent", "static_configs": [{"targets": ["a:1", "[::1]:2"]}]}]
    both = yaml.safe_load(penstock("generate", "prometheus").out)["scrape_configs"]
    assert [job["job_name"] for job in both] == ["penstock", "penstock-agent"]
    assert penstock("generate", "prometheus", "--alerts", "--agent", "a:1").code == 2


def test_alerts_ask_for_metrics_that_there_are() -> None:
    groups = yaml.safe_load(penstock("generate", "prometheus", "--alerts").out)["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    operations = (ROOT / "docs" / "guides" / "operations.md").read_text()
    there = {*names(), *re.findall(r"^\| `(kafka_\w+)`", operations, re.M)}
    asked = {name for rule in rules for name in re.findall(r"(?:kafka|penstock_agent)_\w+", rule["expr"])}
    assert asked
    assert asked <= there
    assert all(rule["annotations"]["summary"].endswith((".", "?")) for rule in rules)

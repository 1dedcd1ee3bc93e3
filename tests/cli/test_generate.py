"""`penstock generate`: what it prints is understood by those it is for."""

from __future__ import annotations

import json
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
METRICS = ROOT / "docs" / "guides" / "metrics.md"


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
        ("RestartPreventExitStatus", "11"),
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


def test_prometheus_reaches_nodes_with_tls_and_a_login() -> None:
    said = ["--broker", "a:1", "--ca-file", "ca.pem"]
    (job,) = yaml.safe_load(penstock("generate", "prometheus", *said, "--bearer-token-file", "t").out)["scrape_configs"]
    assert job == {
        "job_name": "penstock",
        "scheme": "https",
        "tls_config": {"ca_file": "ca.pem"},
        "authorization": {"credentials_file": "t"},
        "static_configs": [{"targets": ["a:1"]}],
    }
    said = ["--broker", "a:1", "--tls", "--username", "scraper", "--password-file", "p"]
    (job,) = yaml.safe_load(penstock("generate", "prometheus", *said).out)["scrape_configs"]
    assert (job["scheme"], job["basic_auth"]) == ("https", {"username": "scraper", "password_file": "p"})
    assert penstock("generate", "prometheus", "--username", "scraper").code == 2
    assert penstock("generate", "prometheus", *said, "--bearer-token-file", "t").code == 2


def there() -> set[str]:
    """Every metric of nodes and agents; other tests hold the guide to what nodes tell."""
    listed = re.findall(r"^\| `((?:kafka|penstock|process|jvm)_\w+)`", METRICS.read_text(), re.M)
    return {*names(), *listed}


def queried(query: str) -> list[str]:
    return re.findall(r"\b(?:kafka|penstock|process|jvm)_\w+", query)


def test_alerts_ask_for_metrics_that_there_are() -> None:
    groups = yaml.safe_load(penstock("generate", "prometheus", "--alerts").out)["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    asked = {name for rule in rules for name in queried(rule["expr"])}
    assert asked
    assert asked <= there()
    assert all(rule["annotations"]["summary"].endswith((".", "?")) for rule in rules)


def test_every_alert_has_words_in_the_guide() -> None:
    groups = yaml.safe_load(penstock("generate", "prometheus", "--alerts").out)["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert re.findall(r"^\| (Penstock\w+) \| \S", METRICS.read_text(), re.M) == alerts
    assert {"PenstockDiskNearlyFull", "PenstockFollowerStandsStill", "PenstockNoController"} <= set(alerts)


def test_the_dashboard_asks_for_metrics_that_there_are_of_what_can_be_chosen() -> None:
    said = penstock("generate", "grafana", "--title", 'The "shop"')
    assert said.code == 0
    dashboard = json.loads(said.out)
    assert dashboard["title"] == 'The "shop"'
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    queries = [each["definition"] for each in variables.values() if "definition" in each]
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    queries += [target["expr"] for panel in panels for target in panel["targets"]]
    for query in queries:
        assert queried(query) or query.startswith('sum(up{job="penstock"}'), query
        assert set(queried(query)) <= there(), query
        assert set(re.findall(r"\$(?!__)(\w+)", query)) <= set(variables), query
        assert all(query.count(left) == query.count(right) for left, right in ("()", "{}", "[]")), query
    assert {panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"} == {
        "Cluster", "Traffic", "Topics and replicas", "Groups", "Disks", "Quorum", "Nodes", "Agents",
        "Agents that send exactly once",
    }  # fmt: skip


def test_no_two_panels_of_the_dashboard_lie_on_each_other() -> None:
    panels = json.loads(penstock("generate", "grafana").out)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells

"""Asking a cluster that can be reached everything that tells whether it is well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from penstock.client.admin.session import unsupported
from penstock.client.cluster_view import parse_bootstrap
from penstock.client.errors import ClientError, NotAllowed
from penstock.model.secret import HIDDEN
from penstock.model.units import count
from penstock.operations import health, held_back
from penstock.operations.diagnosis import findings
from penstock.operations.diagnosis.findings import Finding
from penstock.operations.diagnosis.probe import knock, peer_certificate
from penstock.transport.dial_security import has_tls

if TYPE_CHECKING:
    from penstock.client.admin import Admin, ClusterInfo


_ADMIN_SECRETS: Final = ("penstock.admin.password", "penstock.admin.bearer.token")


class Way(Protocol):
    """How the cluster is reached: where, and with which settings."""

    @property
    def bootstrap(self) -> str: ...

    def security_protocol(self) -> str: ...

    def admin(self, timeout_ms: int | None = None) -> Admin: ...


@dataclass(slots=True)
class Report:
    """What was looked at, what came out, and what was found. `reachable` is whether any broker answered."""

    reachable: bool = False
    checks: list[tuple[str, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, check: str, outcome: str, *found: Finding | None) -> None:
        self.checks.append((check, outcome))
        self.findings += [each for each in found if each is not None]


async def examine(way: Way, lag_max: int) -> Report:
    report = Report()
    expected = "tls" if has_tls(way.security_protocol()) else "kafka"
    await _bootstrap(report, way.bootstrap, expected)
    if not report.reachable:
        return report
    async with way.admin(health.TIMEOUT_MS) as admin:
        cluster = await _step(report, "cluster", lambda: _cluster(report, admin))
        # What the addresses tell explains what the rest could not find out.
        if cluster is not None and await _advertised(report, cluster, way.bootstrap, expected):
            await _step(report, "security", lambda: _security(report, admin, cluster))
            await _step(report, "versions", lambda: _versions(report, admin, cluster))
            await _step(report, "health", lambda: _health(report, admin))
            await _step(report, "clock", lambda: _clock(report, admin))
            await _step(report, "disks", lambda: _disks(report, admin, cluster))
            await _step(report, "transactions", lambda: _transactions(report, admin, cluster))
            await _step(report, "groups", lambda: _groups(report, admin, lag_max))
    return report


async def _bootstrap(report: Report, bootstrap: str, expected: str) -> None:
    """`expected` is what our settings want to speak."""
    for host, port in parse_bootstrap(bootstrap):
        address = f"{host}:{port}"
        answered = await asyncio.to_thread(knock, host, port, expects_tls=expected == "tls")
        if answered.answer == expected:
            report.reachable = True
            report.add("bootstrap", f"{address} speaks {'TLS' if expected == 'tls' else 'Kafka'}")
        elif answered.answer == "kafka":
            report.add("bootstrap", f"{address}: plaintext", findings.plaintext_finding(address))
        else:
            report.add("bootstrap", f"{address}: {answered.words or answered.answer}",
                       findings.bootstrap_finding(address, answered))  # fmt: skip
        if answered.answer == "tls":
            await _certificate(report, host, port)


async def _certificate(report: Report, host: str, port: int) -> None:
    der = await asyncio.to_thread(peer_certificate, host, port)
    if der is None:
        return
    from datetime import UTC, datetime

    from cryptography.x509 import load_der_x509_certificate

    from penstock.certificates.showing import shown

    found = shown(load_der_x509_certificate(der), now=datetime.now(UTC))
    address = f"{host}:{port}"
    report.add("certificate", f"{address} has {found.subject}, {count('day', found.days_left)} left",
               findings.certificate_finding(address, found.subject, found.days_left))  # fmt: skip


async def _step(report: Report, check: str, work: Callable[[], Awaitable[ClusterInfo | None]]) -> ClusterInfo | None:
    try:
        return await work()
    except ClientError as failure:
        report.add(
            check,
            "failed",
            Finding(
                "problem", f"{check}_failed", str(failure), "the cluster could not be asked", "read the broker's log"
            ),
        )
        return None


async def _cluster(report: Report, admin: Admin) -> ClusterInfo:
    cluster = await admin.describe_cluster()
    words = (
        f"{count('broker', len(cluster.brokers))}, controller {cluster.controller} (epoch {cluster.controller_epoch})"
    )
    report.add("cluster", words)
    return cluster


async def _health(report: Report, admin: Admin) -> None:
    _, reasons = await health.look(admin)
    words = ", ".join(reason.kind for reason in reasons) or "nothing is wrong"
    report.add("health", words, *findings.health_findings(reasons))


async def _advertised(report: Report, cluster: ClusterInfo, bootstrap: str, expected: str) -> bool:
    reached, known = False, parse_bootstrap(bootstrap)
    for broker in cluster.brokers:
        if broker.fenced:
            continue
        address = f"{broker.host}:{broker.port}"
        answered = await asyncio.to_thread(knock, broker.host, broker.port, expects_tls=expected == "tls")
        found = findings.advertised_finding(broker.id, address, bootstrap, answered, expected)
        report.add(
            "advertised", f"broker {broker.id} at {address}: {'reachable' if found is None else answered.answer}", found
        )
        reached = reached or found is None
        if answered.answer == "tls" and (broker.host, broker.port) not in known:
            await _certificate(report, broker.host, broker.port)
    return reached


async def _security(report: Report, admin: Admin, cluster: ClusterInfo) -> None:
    """What brokers tell of their own files; a Kafka broker's are read the same way."""
    from penstock.client.admin import ConfigResource
    from penstock.model.config import BadSettings, BrokerSettings
    from penstock.security.weak_settings import weak_settings

    for broker in cluster.brokers:
        if broker.fenced:
            continue
        resource = ConfigResource.broker(broker.id)
        entries = (await admin.describe_configs([resource])).checked()[resource]
        given = [each for each in entries.values() if each.source != "default"]
        told = {each.name: each.value for each in given if each.value is not None}
        # Nobody is told a secret, but that there is one matters.
        hidden = {each.name: HIDDEN for each in given if each.name in _ADMIN_SECRETS}
        try:
            weak = weak_settings(BrokerSettings.load({**told, **hidden}))
        except BadSettings:
            report.add("security", f"broker {broker.id} does not tell all its settings")
            continue
        words = count("weak setting", len(weak)) if weak else "nothing weak"
        report.add("security", f"broker {broker.id} has {words}", *findings.weak_findings(broker.id, weak))


async def _versions(report: Report, admin: Admin, cluster: ClusterInfo) -> None:
    from penstock.protocol.registry import APIS

    ours = {api.name: (api.min, api.max) for api in APIS.values()}
    for broker in cluster.brokers:
        if not broker.fenced:
            served = await admin.api_versions(broker.id)
            report.add("versions", f"broker {broker.id} serves {count('API', len(served))}",
                       *findings.version_findings(broker.id, served, ours))  # fmt: skip


async def _clock(report: Report, admin: Admin) -> None:
    await admin.describe_quorum()  # the first answer pays for connections; the second is timed
    before_ms = time.time() * 1000
    quorum = await admin.describe_quorum()
    after_ms = time.time() * 1000
    stamps = [each.last_caught_up_ms for each in quorum.voters if each.id == quorum.leader]
    if not stamps or stamps[0] <= 0:
        report.add("clock", "the controller does not tell its time")
        return
    difference_ms = stamps[0] - (before_ms + after_ms) / 2
    report.add("clock", f"the controller's differs by {difference_ms:.0f} ms",
               findings.clock_finding(difference_ms, (after_ms - before_ms) / 2))  # fmt: skip


async def _disks(report: Report, admin: Admin, cluster: ClusterInfo) -> None:
    dirs = (await admin.describe_log_dirs([broker.id for broker in cluster.brokers if not broker.fenced])).done
    report.add("disks", count("log directory", sum(map(len, dirs.values()))), *findings.disk_findings(dirs))


async def _transactions(report: Report, admin: Admin, cluster: ClusterInfo) -> None:
    alive = {broker.id for broker in cluster.brokers if not broker.fenced}
    partitions = health.led_by(await admin.topics(internal=True), alive)
    try:
        held_by = await held_back.holding_back(admin, partitions)
    except ClientError as failure:
        if not unsupported(failure) and not isinstance(failure, NotAllowed):
            raise
        report.add("transactions", "brokers do not tell which are open")
        return
    held = len({(each.topic, each.partition) for each in held_by})
    words = f"{count('partition', held)} held back" if held else "nothing is held back"
    if len(partitions) > held_back.PARTITIONS_MAX:
        words += f" among the first {held_back.PARTITIONS_MAX}"
    report.add("transactions", words, *findings.transaction_findings(held_by, time.time_ns() // 1_000_000))


async def _groups(report: Report, admin: Admin, lag_max: int) -> None:
    groups = await admin.groups(types=["classic", "consumer"])
    lags = {}
    for listed in groups:
        lags_of = await admin.group_lag(listed.id)
        members = {each.member_id for each in lags_of if each.member_id}
        lags[listed.id] = (sum(each.lag or 0 for each in lags_of), len(members))
    report.add("groups", count("group", len(groups)), *findings.lag_findings(lags, lag_max))

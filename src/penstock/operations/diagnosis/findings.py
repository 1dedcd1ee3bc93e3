"""What was found, in words: pure functions from facts to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.client.admin import LogDirInfo, OpenTransaction
    from penstock.operations.diagnosis.probe import Knock
    from penstock.operations.health import Reason
    from penstock.security.weak_settings import Weakness

Level = Literal["problem", "notice"]

CLOCK_MS = 1_000
OPEN_LONG_MS = 60_000
"""As long as producers give a transaction by default."""
CERTIFICATE_DAYS, CERTIFICATE_LATE_DAYS = 30, 7
NEEDED = ("ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", "FindCoordinator", "CreateTopics")
"""Without these nothing works; others are missed one by one when they are asked for."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (`problem`) or worth knowing (`notice`); `kind` is for programs."""

    level: Level
    kind: str
    what: str
    why: str
    attempt: str


def bootstrap_finding(address: str, knock: Knock) -> Finding | None:
    """Why nobody at an address speaks Kafka to us."""
    found = {
        "name": (
            f"the name in {address} is not known",
            "without an address nobody can be asked",
            "check the spelling and this machine's DNS and /etc/hosts; an IP address works without either",
        ),
        "refused": (
            f"nothing listens at {address}",
            "the machine answers, but no program has this port",
            "start a broker (`penstock dev` starts one here), or check -b, PENSTOCK_BOOTSTRAP and the profile",
        ),
        "timeout": (
            f"{address} does not answer",
            "the machine is off, not on this network, or a firewall drops the packets",
            "try `ping` and another port of that machine, and look at firewalls and security groups",
        ),
        "unreachable": (
            f"there is no way to {address} from here",
            "this machine has no route there",
            "check the address, the network and a VPN that may be off",
        ),
        "http": (
            f"{address} speaks HTTP, not Kafka",
            "this is a web port: of a console, a registry, or a broker's metrics",
            "use the port of the broker's listener, 9092 by default",
        ),
        "tls": (
            f"{address} speaks TLS",
            "this listener wants an encrypted connection, and nothing was said here about TLS",
            "name a file with security.protocol and ssl.truststore.location by --client-config, or use a PLAINTEXT "
            "listener of the same broker",
        ),
        "silent": (
            f"{address} takes connections but does not speak Kafka",
            "another program has this port, or the broker hangs",
            "look which program listens there (`ss -ltnp`), and into the broker's log",
        ),
        "closed": (
            f"{address} closes the connection without an answer",
            "another program has this port, or the broker is shutting down or wants SASL or TLS",
            "look which program listens there (`ss -ltnp`), and into the broker's log",
        ),
    }.get(knock.answer)
    if found is None:
        return None
    what, why, attempt = found
    return Finding("problem", f"bootstrap_{knock.answer}", what, why, attempt)


def plaintext_finding(address: str) -> Finding:
    return Finding(
        "problem",
        "bootstrap_plaintext",
        f"{address} speaks Kafka without TLS",
        "security.protocol says that this client wants TLS, which this listener does not have",
        "use a TLS listener of the same broker, or set security.protocol to PLAINTEXT or SASL_PLAINTEXT",
    )


def advertised_finding(
    node_id: int, address: str, bootstrap: str, knock: Knock, expected: str = "kafka"
) -> Finding | None:
    """The bootstrap works, but clients go on to the addresses that brokers advertise."""
    if knock.answer == expected:
        return None
    host = address.rpartition(":")[0]
    words = {"name": "is a name that this machine does not know", "refused": "refuses connections"}
    fails = words.get(knock.answer, "cannot be reached")
    local = host in ("localhost", "127.0.0.1", "::1")
    hint = " (localhost means the client's own machine, not the broker's)" if local else ""
    return Finding(
        "problem",
        "advertised_address",
        f"broker {node_id} advertises {address}, which {fails} from here{hint}",
        f"{bootstrap} answers, but clients produce and fetch at the advertised address, so they will hang or fail",
        f"set advertised.listeners of broker {node_id} to an address that clients reach, or make {host!r} known here",
    )


def certificate_finding(address: str, subject: str, days_left: int) -> Finding | None:
    """A certificate that has ended, or will before long."""
    if days_left >= CERTIFICATE_DAYS:
        return None
    ends = "has ended" if days_left < 0 else f"ends in {count('day', days_left)}"
    return Finding(
        "problem" if days_left < CERTIFICATE_LATE_DAYS else "notice",
        "certificate",
        f"the certificate of {address} ({subject}) {ends}",
        "from then on nobody connects to it any more, neither clients nor other nodes",
        "`penstock cert renew FILE` where the cluster's authority is; the node takes up the new file by itself",
    )


def weak_findings(node_id: int, weaknesses: Sequence[Weakness]) -> list[Finding]:
    """Settings of a broker that let in more than their author may think."""
    return [
        Finding(
            "notice",
            "weak_setting",
            f"{each.name} of broker {node_id}: {each.why}",
            "whoever is on the network may use it",
            "change it in the broker's file and start the broker again, one broker after the other",
        )
        for each in weaknesses
    ]


def version_findings(
    node_id: int, served: Mapping[str, tuple[int, int]], ours: Mapping[str, tuple[int, int]]
) -> list[Finding]:
    found = []
    for name in NEEDED:
        low, high = ours[name]
        if name not in served:
            what = f"broker {node_id} does not serve {name}"
        elif served[name][1] < low or served[name][0] > high:
            what = f"broker {node_id} serves {name} {served[name][0]}-{served[name][1]}, this client knows {low}-{high}"
        else:
            continue
        why = "both sides need a version in common"
        found.append(
            Finding("problem", "api_versions", what, why, "upgrade the older of the two; Kafka 2.1 and later work")
        )
    return found


def health_findings(reasons: Sequence[Reason]) -> list[Finding]:
    from penstock.operations.health import sentence

    words = {
        "no_controller": "nothing can be changed and no leader elected",
        "voters_behind": "with fewer voters than a majority nothing can be changed",
        "voters_replaced": "a new disk knows nothing of the votes that were given with the old one, so it has no vote",
        "brokers_down": "what they lead moves to others, what only they have is away",
        "leaderless": "writes and reads of these wait or fail",
        "under_min_isr": "producers with acks=all are refused",
        "under_replicated": "another loss could lose records",
        "damaged": "a bad disk changed them; readers stop there too, and the leader's copy may be the only one",
        "late_transactions": "they see nothing that was written since, and compaction stops there",
        "offline_dirs": "the replicas in them are away",
    }
    # `disk_findings` tells of each disk by itself.
    told = [reason for reason in reasons if reason.kind != "disks_low"]
    return [Finding("problem", reason.kind, sentence(reason), words[reason.kind], reason.attempt) for reason in told]


def disk_findings(log_dirs: Mapping[int, Sequence[LogDirInfo]]) -> list[Finding]:
    from penstock.operations.health import free_percent, nearly_full

    return [
        Finding(
            "problem",
            "disk_full",
            f"{each.path} of broker {node_id} has {free_percent(each)} % free",
            "a full disk takes its replicas offline",
            "lower retention.ms or retention.bytes of large topics, trim them, or add space",
        )
        for node_id, dirs in sorted(log_dirs.items())
        for each in dirs
        if nearly_full(each)
    ]


def lag_findings(lags: Mapping[str, tuple[int, int]], lag_max: int) -> list[Finding]:
    """`lags` has the lag and the number of members of each group."""
    found = []
    for group_id, (lag, members) in sorted(lags.items()):
        if lag > lag_max:
            reading = (
                f"with {count('member', members)} it is slower than the producers" if members else "it has no members"
            )
            found.append(
                Finding(
                    "notice",
                    "group_lag",
                    f"group {group_id} is {count('record', lag, grouped=True)} behind; {reading}",
                    "what it has not read when retention deletes it is lost to it",
                    f"`penstock group describe {group_id}` shows where; add members, up to the number of partitions"
                    if members
                    else f"start its consumers, or `penstock group delete {group_id}` if it is not needed any more",
                )
            )
    return found


def transaction_findings(held_by: Sequence[OpenTransaction], now_ms: int) -> list[Finding]:
    """Transactions that are open for long, and allowed to be: those that are late are a matter of health."""
    from penstock.operations import held_back

    return [
        Finding(
            "notice",
            "open_transaction",
            f"a transaction holds readers of committed records back: {held_back.words(each, now_ms)}",
            "they see nothing that was written to the partition since it began",
            f"commit sooner; `penstock txn fence {each.transactional_id}` aborts it"
            if each.transactional_id is not None
            else f"look again: `penstock txn find-hanging --topic {each.topic} --older-than 1m`",
        )
        for each in held_by
        if now_ms - held_back.since_ms(each) > OPEN_LONG_MS and not held_back.late(each, now_ms)
    ]


def clock_finding(difference_ms: float, uncertain_ms: float) -> Finding | None:
    """`difference_ms` is how far the controller's clock is ahead of ours."""
    if abs(difference_ms) - uncertain_ms < CLOCK_MS:
        return None
    direction = "ahead of" if difference_ms > 0 else "behind"
    return Finding(
        "problem",
        "clock",
        f"the controller's clock is {abs(difference_ms) / 1000:.1f} s {direction} this machine's",
        "timestamps of records, retention and look-ups by time are off by as much",
        "synchronise both clocks (chrony, systemd-timesyncd)",
    )

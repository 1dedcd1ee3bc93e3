"""What links do to frames, decided without a frame; and a switch that does it to real ones."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Iterator

import pytest

from tests.faults.cluster.hosts import CLIENTS, Switched, namespaces_allowed
from tests.faults.cluster.links import CUT, QUEUE_S, WELL, Links, Manner
from tests.patience import within

AB, BA = (1, 2), (2, 1)


def links(**troubles: Manner) -> Links:
    made = Links(random.Random(1))
    for number, manner in enumerate(troubles.values()):
        made.impose(number, [AB], manner)
    return made


def arrivals(made: Links, count: int, *, every_s: float = 0.001, size: int = 100) -> list[float | None]:
    return [made.arrival(AB, size, number * every_s) for number in range(count)]


def test_a_link_that_nothing_is_wrong_with_passes_everything_at_once() -> None:
    assert arrivals(links(), 3) == [0.0, 0.001, 0.002]


def test_a_cut_is_one_way_and_ends_when_the_last_that_cut_is_lifted() -> None:
    made = links(one=CUT, other=CUT)
    assert made.arrival(AB, 100, 5.0) is None
    assert made.arrival(BA, 100, 5.0) == 5.0
    made.lift(0)
    assert made.arrival(AB, 100, 6.0) is None
    made.lift(1)
    assert made.arrival(AB, 100, 7.0) == 7.0


def test_a_lossy_link_loses_its_share() -> None:
    lost = arrivals(links(lossy=Manner(loss=0.2)), 5_000).count(None)
    assert 800 < lost < 1_200


def test_a_late_link_keeps_the_order() -> None:
    found = arrivals(links(late=Manner(delay_ms=50, jitter_ms=100)), 1_000)
    late = [due for due in found if due is not None]
    assert len(late) == 1_000
    assert late == sorted(late)
    assert all(0.05 <= due - number * 0.001 <= 0.151 for number, due in enumerate(late))


def test_a_link_that_reorders_lets_some_overtake() -> None:
    found = [due or 0.0 for due in arrivals(links(mixed=Manner(reorder=0.1, reorder_ms=20)), 1_000)]
    overtaken = sum(due > later for due, later in itertools.pairwise(found))
    assert 50 < overtaken < 150


def test_a_narrow_link_takes_its_time_and_drops_what_does_not_fit_in_its_queue() -> None:
    found = arrivals(links(narrow=Manner(kilobits_per_s=800)), 1_000, size=1_000)
    passed = [due for due in found if due is not None]
    # 100 kB a second for one second, and what the queue holds.
    assert 95 <= len(passed) <= 125
    assert all(due <= 1.0 + QUEUE_S + 0.011 for due in passed)


def test_troubles_add_up() -> None:
    both = Manner(loss=0.5, delay_ms=10, kilobits_per_s=500).beside(Manner(loss=0.5, delay_ms=20))
    assert both == Manner(loss=0.75, delay_ms=30, kilobits_per_s=500)
    assert WELL.beside(CUT) == CUT


@pytest.fixture
def network() -> Iterator[Switched]:
    if not namespaces_allowed():
        pytest.skip("a switch takes network namespaces, which only root may make")
    made = Switched()
    yield made
    made.close()


def reaches(network: Switched, from_id: int, to_id: int, *, wait_s: int = 1) -> bool:
    """Whether a datagram arrives: each side is a process in the namespace of its host."""
    script = (
        "import socket,sys\n"
        "side, address, wait = sys.argv[1:]\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "if side == 'hear':\n"
        "    s.bind((address, 7000)); s.settimeout(float(wait)); print('listening', flush=True)\n"
        "    try: s.recv(10); print('heard')\n"
        "    except TimeoutError: print('nothing')\n"
        "else: s.sendto(b'x', (address, 7000))\n"
    )

    def command(host_id: int, side: str) -> list[str]:
        prefix = [] if host_id == CLIENTS else ["ip", "netns", "exec", network._space(host_id)]
        return [*prefix, "python3", "-c", script, side, network._address(to_id), str(wait_s)]

    hearing = subprocess.Popen(command(to_id, "hear"), stdout=subprocess.PIPE, text=True)
    assert hearing.stdout is not None
    assert hearing.stdout.readline() == "listening\n"
    subprocess.run(command(from_id, "say"), check=True, timeout=within(10))
    said, _ = hearing.communicate(timeout=within(10) + wait_s)
    return said.strip() == "heard"


def test_a_switch_cuts_real_links_one_way(network: Switched) -> None:
    for node_id in (1, 2, 3):
        network.host(node_id)
    assert reaches(network, 1, 2, wait_s=within(20))
    number = network.impose([(1, 2), (2, 3), (3, 1)], CUT)
    assert not reaches(network, 1, 2)
    assert reaches(network, 2, 1, wait_s=within(20))
    assert not reaches(network, 3, 1)
    assert reaches(network, CLIENTS, 1, wait_s=within(20))
    network.lift(number)
    assert reaches(network, 3, 1, wait_s=within(20))

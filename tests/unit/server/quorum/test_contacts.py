from __future__ import annotations

from penstock.model.ids import Epoch, NodeId
from penstock.quorum.state import ReplicaKey
from penstock.quorum.voters import Voter, VoterEndpoint, VoterSet
from penstock.server.peers import Address
from penstock.server.quorum.contacts import Contacts

ME, LEADER = NodeId(1), NodeId(2)
PLAIN = VoterEndpoint("CONTROLLER", "kafka-2", 9093)
SECURED = VoterEndpoint("QUORUM", "kafka-2", 9095)


def voters(*endpoints: VoterEndpoint) -> VoterSet:
    return VoterSet([Voter(ReplicaKey(LEADER), endpoints)])


def where(said: VoterEndpoint, known: VoterSet, listener_name: str = "QUORUM") -> Address | None:
    contacts = Contacts(ME, [], listener_name)
    contacts.tell(Epoch(3), LEADER, said.host, said.port)
    return contacts.address_of(LEADER, Epoch(3), known)


def test_an_address_that_others_dial_means_the_listener_that_we_dial() -> None:
    """While controllers move to another listener some nodes dial the old one, and say so to those who do not."""
    assert where(PLAIN, voters(PLAIN, SECURED)) == Address("kafka-2", 9095)
    assert where(SECURED, voters(PLAIN, SECURED), "CONTROLLER") == Address("kafka-2", 9093)


def test_an_address_that_the_log_does_not_have_is_newer_than_the_log() -> None:
    moved = VoterEndpoint("QUORUM", "kafka-9", 9095)
    assert where(moved, voters(PLAIN, SECURED)) == Address("kafka-9", 9095)
    assert where(PLAIN, voters(PLAIN)) == Address("kafka-2", 9093)

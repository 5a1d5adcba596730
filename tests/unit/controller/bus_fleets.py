"""Fleets whose flavors are pools on message buses."""

from reconciler.spec.model import FleetSpec
from tests.builders import cluster_document, fleet_document, observed_flavor, spec_of

LOCKED = "127.0.0.1:1"
VARIABLE = "KFLEET_TEST_NATS_TOKEN"


def bus_spec(*addresses: str, locked: str = LOCKED, pattern: str = "^") -> FleetSpec:
    """A fleet with a flavor of each bus; the `locked` one wants a token."""
    buses = [{"connector": f"nats://{address}", "subject": "pools", "poolRegExp": pattern} for address in addresses]
    return spec_of(
        *(observed_flavor(f"flavor-{number}", "nats", {"nats": bus}) for number, bus in enumerate(buses)),
        base=(
            fleet_document(nats=[{"servers": [locked], "token": {"env": VARIABLE}}]),
            cluster_document("hub", "standalone"),
        ),
    )

"""The ledger of a fleet, as time goes by."""

import json
from datetime import UTC, datetime, timedelta

from tests.cluster.live_fleet import LiveFleet

LEDGER = "/api/v1/namespaces/kueue-system/configmaps/kfleet-{}-ledger"


def make_older(live_fleet: LiveFleet, age: timedelta) -> str:
    """Everything in the ledger was seen that long ago, and nothing since; at what time."""
    path = LEDGER.format(live_fleet.name)
    content = json.loads(live_fleet.api("manager").get(path)["data"]["ledger.json"])
    then = (datetime.now(UTC) - age).isoformat(timespec="seconds")
    for source in content["sources"]:
        source["seenAt"] = source["changedAt"] = then
    live_fleet.api("manager").patch(path, {"data": {"ledger.json": json.dumps(content)}})
    return then

"""KF079 to KF090, KF098, KF211: MasterQueues, and known defects of kueue-nats, which they were written for."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from reconciler.kueue.reading import at, is_reserved
from reconciler.kueue.structure import problem_of_name
from reconciler.lint.model import Remark, Rule, Severity, View, missing_flavor
from reconciler.spec.files import Document, FieldPath
from reconciler.spec.nats import (
    NOMINAL_DEFAULTS,
    MasterFlavor,
    MasterQueue,
    NatsFlavor,
    bus_name,
    find_bus,
    has_login,
    logins_of,
)
from reconciler.spec.schema import Schema, load_schema
from reconciler.text import suggest

PUBLISHING_PERIOD = 30
SHORTEST_TIMEOUT = timedelta(seconds=2 * PUBLISHING_PERIOD + 5)
KNOWN_STOP_POLICIES = {"Stop": "Hold", "StopAndHold": "HoldAndDrain"}

_ANCHORED = re.compile(r"(\(\?[a-zA-Z]+\))?(\^|\\A|\.\*)")

RULES = (
    Rule(
        "KF079",
        Severity.WARNING,
        "poolLabels names labels that a pool may set",
        "labels of Kubernetes, Kueue, Argo CD, Flux, Helm and kfleet itself make controllers act; pools never set them",
    ),
    Rule(
        "KF080",
        Severity.WARNING,
        "no password in natsConnector",
        "every user who can read git or the object can read it",
    ),
    Rule(
        "KF081",
        Severity.WARNING,
        "poolTimeout of at least 65 seconds",
        "pools speak every 30 seconds: with less than two periods kueue-nats drops a healthy pool again and again",
    ),
    Rule(
        "KF082",
        Severity.WARNING,
        "canLendTo limits every resource",
        "a resource that lendingLimit does not name is borrowed without a limit",
    ),
    Rule(
        "KF083",
        Severity.WARNING,
        "entry of a MasterQueue is nats or local",
        "an entry that is neither has no effect",
    ),
    Rule(
        "KF084",
        Severity.WARNING,
        "stopPolicy is one that Kueue knows",
        "the MasterQueue's own words Stop and StopAndHold are unknown to Kueue; kfleet says Hold and HoldAndDrain",
    ),
    Rule(
        "KF085",
        Severity.WARNING,
        "canLendTo names a queue once",
        "kueue-nats would list every flavor twice, which Kueue refuses; kfleet takes the smaller limit",
    ),
    Rule(
        "KF086",
        Severity.WARNING,
        "poolRegExp is anchored",
        "it is searched anywhere in a pool's name",
    ),
    Rule(
        "KF087",
        Severity.WARNING,
        "natsFlavor names its virtual node",
        "the ResourceFlavor finds its node by this name",
    ),
    Rule(
        "KF088",
        Severity.ERROR,
        "borrowWithinCohort goes with reclaimWithinCohort",
        "an empty borrowWithinCohort means LowerPriority, which Kueue refuses where reclaimWithinCohort is Never",
    ),
    Rule(
        "KF089",
        Severity.WARNING,
        "pool has a name that an object can have",
        "it becomes a part of a ResourceFlavor's name and of a NATS subject",
    ),
    Rule(
        "KF090",
        Severity.WARNING,
        "local flavor has a nominalQuota",
        "no pool announces the quota of a local flavor",
    ),
    Rule(
        "KF098",
        Severity.ERROR,
        "one way to log in to the servers of a bus",
        "there is one connection to them: one of two logins would serve both, and may hear nothing for the other",
    ),
    Rule(
        "KF211",
        Severity.WARNING,
        "MasterQueue has no unknown field",
        "its CRD drops the field without a word, and the setting is lost",
    ),
)


def check_master_queues(view: View) -> Iterator[Remark]:
    for master in view.spec.master_queues:
        yield from _check_template(master)
        yield from _check_fields(master.document)
        for number, flavor in enumerate(master.flavors):
            path = ("spec", "flavors", number)
            yield from _check_flavor(master, flavor, path)
            yield from _check_lending(master, flavor, path)
            if flavor.nats is not None:
                yield from _check_nats(master, flavor, flavor.nats, (*path, "natsFlavor"))


def _check_fields(document: Document) -> Iterator[Remark]:
    schema = load_schema(document.kind)["properties"]["spec"]
    for path, known in unknown_fields(schema, document.value.get("spec"), ("spec",)):
        name = str(path[-1])
        problem = f"unknown field, which has no effect{suggest(name, known)}"
        yield Remark("KF211", document, path, problem, f"allowed: {', '.join(sorted(known))}")


def unknown_fields(schema: Schema, value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Iterable[str]]]:
    """Return the path of each field that a schema does not name where it names any, with those that it names."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from unknown_fields(schema.get("items", {}), item, (*path, number))
    known = schema.get("properties", {})
    if not isinstance(value, dict) or not known or "additionalProperties" in schema:
        return
    for name, content in value.items():
        if name in known:
            yield from unknown_fields(known[name], content, (*path, name))
        else:
            yield (*path, name), known


def _check_template(master: MasterQueue) -> Iterator[Remark]:
    stop_policy = at(master.template, "stopPolicy")
    if stop_policy in KNOWN_STOP_POLICIES:
        problem = f"{stop_policy!r} is not known to Kueue: kfleet reads it as {KNOWN_STOP_POLICIES[stop_policy]}"
        hint = "kueue-nats passes it on unchanged, and Kueue then rejects every queue"
        yield Remark("KF084", master.document, ("spec", "template", "stopPolicy"), problem, hint)
    preemption = at(master.template, "preemption")
    policy = at(preemption, "borrowWithinCohort", "policy")
    if policy not in (None, "Never") and at(preemption, "reclaimWithinCohort") == "Never":
        problem = f"the policy is {policy}, but reclaimWithinCohort is Never: Kueue rejects that"
        path = ("spec", "template", "preemption", "borrowWithinCohort")
        hint = "set reclaimWithinCohort to LowerPriority or Any, or policy: Never here"
        yield Remark("KF088", master.document, path, problem, hint)


def _check_flavor(master: MasterQueue, flavor: MasterFlavor, path: FieldPath) -> Iterator[Remark]:
    if flavor.nats is None and not flavor.is_local:
        problem = f"entry {flavor.name} has neither natsFlavor nor localFlavor: it has no effect"
        yield Remark("KF083", master.document, path, problem)
    if flavor.is_local and flavor.nominal_quota is None:
        problem = f"local flavor {flavor.name} has no nominalQuota, and no pool announces one"
        yield Remark("KF090", master.document, (*path, "localFlavor"), problem)


def _check_lending(master: MasterQueue, flavor: MasterFlavor, path: FieldPath) -> Iterator[Remark]:
    seen: set[str] = set()
    for number, lending in enumerate(flavor.lend_to):
        missing = [name for name in NOMINAL_DEFAULTS if name not in lending.limits]
        if missing:
            problem = f"queue {lending.queue} may borrow {', '.join(missing)} without a limit"
            hint = "list every resource in lendingLimit; 0 lends nothing"
            yield Remark("KF082", master.document, (*path, "canLendTo", number), problem, hint)
        if lending.queue in seen:
            problem = f"queue {lending.queue} has an entry already: the smaller of two limits applies"
            yield Remark("KF085", master.document, (*path, "canLendTo", number, "queue"), problem)
        seen.add(lending.queue)


def _check_nats(master: MasterQueue, flavor: MasterFlavor, nats: NatsFlavor, path: FieldPath) -> Iterator[Remark]:
    yield from _check_connector(nats, master.document, (*path, "natsConnector"))
    if nats.pool_timeout < SHORTEST_TIMEOUT:
        seconds, least = int(nats.pool_timeout.total_seconds()), int(SHORTEST_TIMEOUT.total_seconds())
        problem = f"{seconds} s is short: pools send every {PUBLISHING_PERIOD} s, so one late message drops a pool"
        hint = f"use {least} or more; kfleet always waits for at least two of a pool's own periods"
        yield Remark("KF081", master.document, (*path, "poolTimeout"), problem, hint)
    if nats.pool_pattern is not None and not _ANCHORED.match(nats.pool_pattern):
        problem = f"{nats.pool_pattern!r} matches anywhere in a pool's name, also after other letters"
        yield Remark("KF086", master.document, (*path, "poolRegExp"), problem, "begin it with ^, end it with $")
    if not nats.virtual_node:
        problem = "the flavor's nodes are found by the host name of the virtual node, which is not set"
        yield Remark("KF087", master.document, path, problem, "set virtualNode")
    for number, pool in enumerate(nats.pools):
        if "." in pool or problem_of_name(f"{master.name}-{flavor.name}-{pool}"):
            problem = f"{pool!r} cannot be a part of a ResourceFlavor's name or of a subject"
            hint = "use lower-case letters, digits and -; kfleet names its flavor with a hash"
            yield Remark("KF089", master.document, (*path, "pools", number), problem, hint)


def check_flavor_pools(view: View) -> Iterator[Remark]:
    for flavor in view.spec.flavors:
        if flavor.capacity.nats is not None:
            path = ("spec", "capacity", "nats", "connector")
            yield from _check_connector(flavor.capacity.nats, flavor.document, path)


def _check_connector(nats: NatsFlavor, document: Document, path: FieldPath) -> Iterator[Remark]:
    if has_login(nats.connector):
        problem = "the URL contains a password or a token, which all users with access to git or the object can read"
        hint = "keep it in a Secret, a file or a variable, and refer to it in spec.nats of the Fleet"
        yield Remark("KF080", document, path, problem, hint)


def check_pool_labels(view: View) -> Iterator[Remark]:
    for number, entry in enumerate(view.spec.fleet.policy.capacity.pool_labels or ()):
        if is_reserved(entry):
            problem = f"labels like {entry!r} have a meaning for controllers: kfleet never lets a pool set them"
            path = ("spec", "policy", "capacity", "poolLabels", number)
            yield Remark("KF079", view.spec.fleet.document, path, problem, "remove it")


def check_logins(view: View) -> Iterator[Remark]:
    """All users of the same servers share one connection, so different credentials cannot both be used."""
    first: dict[str, tuple[frozenset[str], Document]] = {}
    for nats, document, path in _connectors(view):
        logins = logins_of(nats.connector)
        name = bus_name(nats.connector)
        known, other = first.setdefault(name, (logins, document))
        if logins != known:
            problem = f"{other.kind} {other.name} has other credentials for {name}, and both share one connection"
            yield Remark("KF098", document, path, problem, "set the credentials once, in spec.nats of the Fleet")
        if unnamed := find_bus(nats.connector, view.spec.fleet.nats).unnamed:
            problem = f"spec.nats of the Fleet has credentials for some of these servers, not for {', '.join(unnamed)}"
            hint = "name all of them in one entry there, or use another connector for the others"
            yield Remark("KF098", document, path, problem, hint)


def _connectors(view: View) -> Iterator[tuple[NatsFlavor, Document, FieldPath]]:
    for master in view.spec.master_queues:
        for number, entry in enumerate(master.flavors):
            if entry.nats is not None:
                yield entry.nats, master.document, ("spec", "flavors", number, "natsFlavor", "natsConnector")
    for flavor in view.spec.flavors:
        if flavor.capacity.nats is not None:
            yield flavor.capacity.nats, flavor.document, ("spec", "capacity", "nats", "connector")


def check_local_flavors(view: View) -> Iterator[Remark]:
    for master in view.spec.master_queues:
        clusters = view.spec.targeted(master.targets)
        for number, flavor in enumerate(master.flavors):
            for cluster in clusters if flavor.is_local else ():
                if ("", flavor.name) not in view.of(cluster.name, "ResourceFlavor"):
                    path = ("spec", "flavors", number, "localFlavor")
                    problem, hint = missing_flavor(view, flavor.name)
                    yield Remark("KF033", master.document, path, problem, hint, cluster=cluster.name)

"""KF018, KF045, KF046, KF050 to KF054: AdmissionChecks of ClusterQueues, and what depends on MultiKueue's."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.kueue.kinds import GROUP, MULTIKUEUE_CONTROLLER
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.lint.model import Remark, Rule, Severity, View, about, is_native, listed, misnamed
from reconciler.objects import ClusterName
from reconciler.render.model import DesiredObject
from reconciler.spec.files import FieldPath
from reconciler.text import quote_value

CHECKS: FieldPath = ("spec", "admissionChecksStrategy", "admissionChecks")
PROVISIONING = f"{GROUP}/provisioning-request"
CHECK_CAPACITY = "check-capacity.autoscaling.x-k8s.io"
CONTROLLER: FieldPath = ("spec", "controllerName")
# The domains of Kubernetes: a third-party controller has no name in them.
DOMAIN = "k8s.io"

RULES = (
    Rule(
        "KF018",
        Severity.ERROR,
        "controller of a check exists",
        "no controller answers a check whose controllerName is misspelt, and the API server accepts any name",
    ),
    Rule(
        "KF045",
        Severity.ERROR,
        "queue has one check of MultiKueue",
        "Kueue makes a queue with two inactive",
        can_be_silenced=False,
    ),
    Rule(
        "KF046",
        Severity.ERROR,
        "no ProvisioningRequest beside MultiKueue",
        "Kueue makes the queue inactive; nodes are asked for where the job runs",
        can_be_silenced=False,
    ),
    Rule(
        "KF050",
        Severity.WARNING,
        "admission check is in the fleet",
        "a queue with a missing check stays inactive; silence it where the check is not kfleet's",
    ),
    Rule(
        "KF051",
        Severity.ERROR,
        "check of MultiKueue holds for all flavors",
        "Kueue makes a queue inactive whose MultiKueue check is for some flavors only",
        can_be_silenced=False,
    ),
    Rule(
        "KF052",
        Severity.WARNING,
        "LocalQueue of the manager is on the workers",
        "the link between the clusters is the LocalQueue's name: without it a copy waits for ever and holds quota",
    ),
    Rule(
        "KF053",
        Severity.WARNING,
        "provisioning class adds nodes",
        "check-capacity only looks whether there is room, which surprises who expects nodes",
    ),
    Rule(
        "KF054",
        Severity.WARNING,
        "one writer per quota",
        "with quotaManagement Automated Kueue writes the quota of the manager's queues, and the fleet's counts once",
    ),
)


def check_admission_checks(view: View) -> Iterator[Remark]:
    for queue in view.every("ClusterQueue"):
        known = view.of(queue.ref.cluster, "AdmissionCheck")
        checks = _checks_of(queue)
        for number, check in enumerate(checks):
            name = as_text(at(check, "name"))
            if name and ("", name) not in known:
                problem = f"there is no AdmissionCheck {name!r} in the fleet"
                hint = "the queue admits nothing until the AdmissionCheck exists"
                remark = about(queue, "KF050", (*CHECKS, number, "name"), problem, hint)
                yield misnamed(remark, name, [other for _, other in known])
        if any(_controller(known, check) == MULTIKUEUE_CONTROLLER for check in checks):
            yield from _check_multikueue(queue, known)


def _checks_of(queue: DesiredObject) -> tuple[Any, ...]:
    return tuple(as_list(at(queue.manifest, *map(str, CHECKS))))


def _controller(known: Mapping[tuple[str, str], DesiredObject], check: Any) -> str:
    entry = known.get(("", as_text(at(check, "name"))))
    return as_text(at(entry.manifest, "spec", "controllerName")) if entry else ""


def _check_multikueue(queue: DesiredObject, known: Mapping[tuple[str, str], DesiredObject]) -> Iterator[Remark]:
    checks = _checks_of(queue)
    found = [number for number, check in enumerate(checks) if _controller(known, check) == MULTIKUEUE_CONTROLLER]
    names = [as_text(at(checks[number], "name")) for number in found]
    if len(found) > 1:
        problem = f"the queue has {len(found)} MultiKueue checks ({', '.join(names)}), Kueue allows one"
        yield about(queue, "KF045", (*CHECKS, found[1], "name"), problem, "list all workers in one MultiKueueConfig")
    for number in found:
        if at(checks[number], "onFlavors"):
            problem = f"{names[0]} is a MultiKueue check, which must apply to all flavors of the queue"
            yield about(queue, "KF051", (*CHECKS, number, "onFlavors"), problem, "remove onFlavors")
    for number, check in enumerate(checks):
        if _controller(known, check) == PROVISIONING:
            problem = f"{as_text(at(check, 'name'))} requests nodes on the manager, where {names[0]} runs no job"
            hint = "put the ProvisioningRequest check on the workers' queues"
            yield about(queue, "KF046", (*CHECKS, number, "name"), problem, hint)


def check_controllers(view: View) -> Iterator[Remark]:
    """Report a check without a controller: its status never changes, and the API server accepts any name."""
    for entry in view.every("AdmissionCheck"):
        name = as_text(at(entry.manifest, *map(str, CONTROLLER)))
        meant = _meant_controller(name, as_text(at(entry.manifest, "spec", "parameters", "kind")))
        if name in {MULTIKUEUE_CONTROLLER, PROVISIONING} or not (meant or _is_of_kubernetes(name)):
            continue
        problem = f"Kueue has no controller {quote_value(name)}: no status is ever set, and its queues admit nothing"
        yield about(entry, "KF018", CONTROLLER, problem, _right_controller(meant))


def _meant_controller(name: str, parameters: str) -> str:
    """Return the Kueue controller that a name resembles, or that the kind of the parameters belongs to."""
    looks = {MULTIKUEUE_CONTROLLER: "multikueue", PROVISIONING: "provisioningrequest"}
    letters = name.lower().replace("-", "").replace("_", "")
    by_name = (controller for controller, look in looks.items() if look in letters)
    by_kind = (controller for controller, look in looks.items() if parameters.lower() == f"{look}config")
    return next(by_name, "") or (next(by_kind, "") if _is_of_kubernetes(name) else "")


def _is_of_kubernetes(name: str) -> bool:
    return name.lower().rpartition("/")[0].endswith(DOMAIN)


def _right_controller(meant: str) -> str:
    if not meant:
        return f"write {MULTIKUEUE_CONTROLLER} or {PROVISIONING}, or the name of a controller in its vendor's domain"
    kinds = "; MultiKueueCluster and MultiKueueConfig are kinds of objects" if meant == MULTIKUEUE_CONTROLLER else ""
    return f"write {meant}{kinds}. It is immutable once the check is on a cluster"


def check_provisioning(view: View) -> Iterator[Remark]:
    for entry in view.every("ProvisioningRequestConfig"):
        if at(entry.manifest, "spec", "provisioningClassName") == CHECK_CAPACITY:
            problem = f"{CHECK_CAPACITY} only looks for free capacity: no node is ever added"
            hint = "best-effort-atomic-scale-up.autoscaling.x-k8s.io adds nodes"
            yield about(entry, "KF053", ("spec", "provisioningClassName"), problem, hint)


def check_quota_writers(view: View) -> Iterator[Remark]:
    """Kueue's own quota automation writes the quota of every manager queue that uses such a config."""
    for queue in view.every("ClusterQueue"):
        config = _config_of(view, queue)
        if config is not None and at(config.manifest, "spec", "quotaManagement") == "Automated":
            problem = f"Kueue itself writes the quota of queue {queue.ref.name}: kfleet sets it only at creation"
            hint = "use quotaManagement: Manual if the fleet should manage it"
            yield about(config, "KF054", ("spec", "quotaManagement"), problem, hint)


def _config_of(view: View, queue: DesiredObject) -> DesiredObject | None:
    """Return the MultiKueueConfig of a queue's MultiKueue check."""
    known = view.of(queue.ref.cluster, "AdmissionCheck")
    for check in _checks_of(queue):
        if _controller(known, check) == MULTIKUEUE_CONTROLLER:
            name = at(known["", as_text(at(check, "name"))].manifest, "spec", "parameters", "name")
            return view.of(queue.ref.cluster, "MultiKueueConfig").get(("", as_text(name)))
    return None


def check_worker_local_queues(view: View) -> Iterator[Remark]:
    """Workloads find their queue on a worker by the LocalQueue's name; without a LocalQueue they wait there forever."""
    manager = view.manager.name if view.manager else ClusterName("")
    for address, entry in view.of(manager, "LocalQueue").items():
        if not is_native(entry):
            continue
        workers = _workers_of(view, manager, as_text(at(entry.manifest, "spec", "clusterQueue")))
        missing = [name for name in workers if address not in view.of(name, "LocalQueue")]
        if missing:
            problem = f"MultiKueue sends its workloads to {listed(missing)}, which has no LocalQueue of this name"
            yield about(entry, "KF052", ("metadata", "name"), problem, "add the LocalQueue to these workers too")
        homeless = [name for name in workers if _lacks_namespace(view, manager, name, entry.ref.namespace)]
        if homeless:
            problem = f"the fleet has namespace {entry.ref.namespace} on the manager but not on {listed(homeless)}"
            hint = "add the Namespace to these workers too: MultiKueue does not create namespaces"
            yield about(entry, "KF052", ("metadata", "namespace"), problem, hint)


def _lacks_namespace(view: View, manager: ClusterName, worker: ClusterName, namespace: str) -> bool:
    """Skip a namespace without a document: the fleet does not know it, and it may exist on every cluster."""
    address = ("", namespace)
    return address in view.of(manager, "Namespace") and address not in view.of(worker, "Namespace")


def _workers_of(view: View, manager: ClusterName, queue: str) -> list[ClusterName]:
    """Return the clusters of the fleet that the MultiKueue check of a manager's queue refers to."""
    found = view.of(manager, "ClusterQueue").get(("", queue))
    config = _config_of(view, found) if found else None
    names = as_list(at(config.manifest, "spec", "clusters")) if config else ()
    return [ClusterName(name) for name in map(as_text, names) if name in view.clusters]

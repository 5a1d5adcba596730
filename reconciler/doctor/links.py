"""What is wrong or risky with the links of a manager to its workers: what `kfleet preflight` checks for a fleet."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.doctor.model import Diagnostic, DoctorFacts, Urgency
from reconciler.doctor.queues import name_of
from reconciler.kueue.configuration import ConfigurationError, KueueSettings, read_settings
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.frameworks import FRAMEWORKS, job_kinds
from reconciler.kueue.kinds import CANONICAL, GROUP, MULTIKUEUE_CONTROLLER, V1BETA2_SINCE, KueueVersion
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.multikueue.model import SeenCredential
from reconciler.multikueue.preflight import TWICE_REMEDY, is_counted_twice, listed, twice_text
from reconciler.objects import ClusterName, Manifest
from reconciler.snapshot.model import ClusterObjects
from reconciler.text import counted

_SOON = timedelta(days=7)
_FAR_APART = 3


def check_links(facts: DoctorFacts) -> Iterator[Diagnostic]:
    for manager in facts.managers:
        for name in facts.roles.workers_of(manager.name):
            if (worker := facts.cluster(name)) is not None:
                yield from _check_release(facts, manager, worker)
                yield from _check_kinds(facts, manager, worker)
                yield from _check_frameworks(facts, manager, worker)
        yield from _check_local_queues(facts, manager)
        yield from _check_tokens(facts, manager)


def _check_release(facts: DoctorFacts, manager: ClusterObjects, worker: ClusterObjects) -> Iterator[Diagnostic]:
    here, there = facts.release(worker), facts.release(manager)
    if here is None or there is None or (here.major, here.minor) == (there.major, there.minor):
        return
    severity, message, remedy = _skew(here, there, manager)
    yield Diagnostic(
        code="worker-release", severity=severity, cluster=worker.name, subject="", message=message, remedy=remedy
    )


def _skew(here: KueueVersion, there: KueueVersion, manager: ClusterObjects) -> tuple[Urgency, str, str]:
    settings = settings_of(manager)
    if here < V1BETA2_SINCE <= there:
        message = (
            f"its Kueue {here} does not serve {CANONICAL}, as which Kueue {there} of {manager.name} writes Workloads"
        )
        return Urgency.ERROR, f"{message}: no job can be sent", f"upgrade its Kueue to {V1BETA2_SINCE} or newer"
    if settings is not None and is_counted_twice(here, there, settings):
        return Urgency.ERROR, twice_text(here, there, manager.name), TWICE_REMEDY
    is_far = abs(here.minor - there.minor) >= _FAR_APART
    message = f"runs Kueue {here}, and its manager {manager.name} runs {there}"
    remedy = "run the same minor release everywhere: Kueue does not test others together"
    return (Urgency.WARNING if is_far else Urgency.ADVICE), message, remedy


def settings_of(cluster: ClusterObjects) -> KueueSettings | None:
    """The settings by Kueue's Configuration; None if it could not be read."""
    try:
        return read_settings(cluster.configuration) if cluster.configuration else None
    except ConfigurationError:
        return None


def _check_kinds(facts: DoctorFacts, manager: ClusterObjects, worker: ClusterObjects) -> Iterator[Diagnostic]:
    settings, served = settings_of(manager), facts.seen.served.get(worker.name)
    if settings is None or served is None:
        return
    missing = [str(kind) for kind in job_kinds(settings) if (kind.group, kind.kind) not in served]
    if missing:
        yield Diagnostic(
            code="worker-lacks-kinds",
            severity=Urgency.ERROR,
            cluster=worker.name,
            subject="",
            message=f"does not serve {', '.join(missing)}, which Kueue of {manager.name} watches on every worker: "
            "one that is missing makes the whole worker unusable",
            remedy=f"install the definitions, or remove the frameworks from integrations.frameworks on {manager.name}",
        )


def _check_frameworks(facts: DoctorFacts, manager: ClusterObjects, worker: ClusterObjects) -> Iterator[Diagnostic]:
    """Jobs of a framework that the worker's Kueue does not manage run there beside its queues."""
    there, here, served = settings_of(manager), settings_of(worker), facts.seen.served.get(worker.name)
    if there is None or here is None or served is None:
        return
    known = {name: FRAMEWORKS[name] for name in there.frameworks if name in FRAMEWORKS}
    sent = [name for name, kind in known.items() if (kind.group, kind.kind) in served]
    if unmanaged := [name for name in sent if name not in here.frameworks]:
        yield Diagnostic(
            code="worker-lacks-frameworks",
            severity=Urgency.WARNING,
            cluster=worker.name,
            subject="",
            message=f"its Kueue does not manage {listed(unmanaged)}, and Kueue of {manager.name} sends such jobs here: "
            "they run beside the queues",
            remedy=f"add them to integrations.frameworks here, or remove them on {manager.name}",
        )


def check_origins(facts: DoctorFacts) -> Iterator[Diagnostic]:
    """Managers find their own Workloads on a worker by the origin, and delete those that they do not know."""
    for worker in facts.clusters:
        managers: dict[str, list[str]] = {}
        for manager in facts.managers:
            settings = settings_of(manager)
            if settings is not None and worker.name in facts.roles.workers_of(manager.name):
                managers.setdefault(settings.origin, []).append(manager.name)
        for origin, rivals in managers.items():
            if len(rivals) > 1:
                yield Diagnostic(
                    code="same-origin",
                    severity=Urgency.ERROR,
                    cluster=worker.name,
                    subject="",
                    message=f"{' and '.join(rivals)} dispatch jobs here with the same origin {origin!r}: "
                    "each deletes the other's jobs",
                    remedy="set another multiKueue.origin in the Configuration of one of them",
                )


def _check_local_queues(facts: DoctorFacts, manager: ClusterObjects) -> Iterator[Diagnostic]:
    for live in manager.of(GROUP, "LocalQueue"):
        for name in _workers_of(facts, manager, as_text(at(live, "spec", "clusterQueue"))):
            worker = facts.cluster(name)
            if worker is None or not worker.has(GROUP, "LocalQueue"):
                continue
            if name_of(live) not in {name_of(one) for one in worker.of(GROUP, "LocalQueue")}:
                yield Diagnostic(
                    code="local-queue-missing-on-worker",
                    severity=Urgency.ERROR,
                    cluster=name,
                    subject=f"LocalQueue/{name_of(live)}",
                    message=f"does not exist, and MultiKueue sends jobs of that LocalQueue of {manager.name} here: "
                    "they wait for ever and hold quota there; Kueue itself does not report it",
                    remedy="create the LocalQueue in a namespace of the same name",
                )


def _workers_of(facts: DoctorFacts, manager: ClusterObjects, queue: str) -> Iterator[ClusterName]:
    """The clusters to which a queue of the manager sends jobs, as far as they were recognized."""
    live = next((one for one in manager.of(GROUP, "ClusterQueue") if name_of(one) == queue), None)
    if live is None:
        return
    strategy = at(to_canonical(live).manifest, "spec", "admissionChecksStrategy", "admissionChecks")
    checks = {as_text(at(check, "name")) for check in as_list(strategy)}
    configs = {
        as_text(at(check, "spec", "parameters", "name"))
        for check in manager.of(GROUP, "AdmissionCheck")
        if name_of(check) in checks and at(check, "spec", "controllerName") == MULTIKUEUE_CONTROLLER
    }
    for config in manager.of(GROUP, "MultiKueueConfig"):
        for member in as_list(at(config, "spec", "clusters")) if name_of(config) in configs else ():
            if (name := facts.roles.members.get((manager.name, as_text(member)))) is not None:
                yield name


def _check_tokens(facts: DoctorFacts, manager: ClusterObjects) -> Iterator[Diagnostic]:
    for live in manager.of(GROUP, "MultiKueueCluster"):
        seen = facts.seen.credentials.get((manager.name, name_of(live)))
        if seen is not None and (found := _problem_of(seen, facts.now)):
            yield _of_token(manager, live, *found)


def _problem_of(seen: SeenCredential, now: datetime) -> tuple[Urgency, str, str] | None:
    token = seen.token
    if seen.problem and not seen.has_certificate:
        message = "its Secret does not exist" if seen.is_missing else seen.problem
        return Urgency.ERROR, message, "write a kubeconfig into the Secret"
    # A token that says nothing of itself may end all the same.
    if token is not None and token.expires is None and token.subject:
        message = "its token never expires: who has it once has it for ever"
        return Urgency.ADVICE, message, "let kfleet issue tokens that it renews"
    noun, end = ("client certificate", seen.certificate_end) if token is None else ("token", token.expires)
    if end is not None and end - now < _SOON:
        severity, message = _ending(noun, end - now)
        return severity, message, f"issue a new {noun}; tokens of kfleet are renewed by themselves"
    return None


def _ending(noun: str, left: timedelta) -> tuple[Urgency, str]:
    if left < timedelta():
        return Urgency.ERROR, f"its {noun} ended {counted(max(-left.days - 1, 0), 'day')} ago: no job can be sent"
    hours = int(left.total_seconds() // 3600)
    return Urgency.WARNING, f"its {noun} ends in {counted(hours, 'hour')}: no job can be sent then"


def _of_token(manager: ClusterObjects, live: Manifest, severity: Urgency, message: str, remedy: str) -> Diagnostic:
    return Diagnostic(
        code="token",
        severity=severity,
        cluster=manager.name,
        subject=f"MultiKueueCluster/{name_of(live)}",
        message=message,
        remedy=remedy,
    )

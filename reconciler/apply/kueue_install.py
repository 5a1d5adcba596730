"""Carries out the steps of an installation of Kueue: one cluster after the other, each until it is healthy."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from reconciler.apply.kueue_health import wait_until_healthy
from reconciler.clients.helm import MANAGER, Chart, Helm, WantedRelease
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, EdgeError
from reconciler.kueue_install.model import (
    InstallAction,
    InstallRefusal,
    InstallStep,
    StepOutcome,
    StepState,
    WantedKueue,
)
from reconciler.kueue_install.records import DEFINITION
from reconciler.objects import ClusterName, Manifest

_PARALLEL = 8
_NOT_FOUND, _CONFLICT = 404, 409
_SECRETS = "/api/v1/namespaces/{}/secrets/{}"
Tell = Callable[[StepOutcome], None]
Report = Callable[[ClusterName, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """What all steps need: the clusters, what helm sends to each, and how long each may take."""

    helm: Helm
    clients: Mapping[ClusterName, ApiServer]
    charts: Mapping[ClusterName, Chart]
    targets: Mapping[ClusterName, WantedKueue]
    timeout: timedelta
    lost_lease: Callable[[], str] = lambda: ""


class Rehearsal(NamedTuple):
    """What a server said to a dry run. `managers` own fields that the chart would overwrite, by object."""

    refusals: tuple[InstallRefusal, ...] = ()
    managers: tuple[tuple[str, str], ...] = ()


def rehearse(client: ApiServer, target: WantedKueue, *, is_forced: bool) -> Rehearsal:
    """Send every CRD, and every other object that exists, as a server-side dry run; nothing is written.

    Raises ClusterError if there is no answer, which does not count as a refusal.
    """
    with ThreadPoolExecutor(_PARALLEL) as pool:
        found = list(pool.map(lambda manifest: _rehearse(client, manifest, is_forced=is_forced), target.objects))
    return Rehearsal(
        tuple(refusal for one in found for refusal in one.refusals),
        tuple(dict.fromkeys(pair for one in found for pair in one.managers)),
    )


def _rehearse(client: ApiServer, manifest: Manifest, *, is_forced: bool) -> Rehearsal:
    subject = f"{manifest['kind']} {manifest['metadata']['name']}"
    is_definition = manifest["kind"] == DEFINITION
    try:
        path = client.path_of(manifest)
        if not is_definition and client.find(path) is None:
            return Rehearsal()
        client.apply_at(
            path,
            _without_namespace(path, manifest),
            manager=MANAGER,
            is_forced=is_forced or is_definition,
            is_dry_run=True,
        )
    except ClusterError as error:
        if error.status == _CONFLICT and error.causes:
            others = {cause.manager for cause in error.causes} - {MANAGER, ""}
            return Rehearsal(managers=tuple((subject, other) for other in sorted(others)))
        if error.is_retryable:
            raise
        problem = f"{subject}: the API server refuses it in a dry run: {error.problem}"
        return Rehearsal((InstallRefusal(problem, _remedy(error)),))
    return Rehearsal()


def _without_namespace(path: str, manifest: Manifest) -> Manifest:
    """Some templates give an object without a namespace one; helm drops it as well."""
    if "/namespaces/" in path:
        return manifest
    return {**manifest, "metadata": {key: value for key, value in manifest["metadata"].items() if key != "namespace"}}


def _remedy(error: ClusterError) -> str:
    if error.status == 403:
        return "the account needs the rights of an administrator to install Kueue"
    if error.status == 422:
        return "if a field of it is immutable, delete the object and repeat this: jobs and queues stay"
    if error.status == _NOT_FOUND:
        return "install that kind first, or turn off in the values what needs it"
    return ""


def carry_out(
    installer: Installer, steps: Iterable[InstallStep], report: Report, tell: Tell
) -> tuple[StepOutcome, ...]:
    """Take the steps in their order. After the first one that fails, no other is started."""
    outcomes: list[StepOutcome] = []
    for step in steps:
        if step.action is InstallAction.SKIP:
            continue
        has_failed = any(outcome.state in {StepState.FAILED, StepState.NOT_STARTED} for outcome in outcomes)
        outcome = StepOutcome(step.cluster, StepState.NOT_STARTED) if has_failed else _take(installer, step, report)
        if not has_failed:
            tell(outcome)
        outcomes.append(outcome)
    return tuple(outcomes)


def _take(installer: Installer, step: InstallStep, report: Report) -> StepOutcome:
    started = time.monotonic()
    problem = "".join(_problems(installer, step, report))
    state = StepState.FAILED if problem else StepState.DONE if step.has_work else StepState.UNCHANGED
    return StepOutcome(step.cluster, state, problem, time.monotonic() - started)


def _problems(installer: Installer, step: InstallStep, report: Report) -> Iterator[str]:
    """Yield one problem at most: what follows it is not tried."""
    client, target = installer.clients[step.cluster], installer.targets[step.cluster]
    try:
        if step.has_work:
            if lost := installer.lost_lease():
                yield lost
                return
            _clear(client, step)
            report(step.cluster, f"helm upgrade {step.release}")
            wanted = WantedRelease(
                name=step.release,
                namespace=step.namespace,
                chart=installer.charts[step.cluster],
                values=target.values,
                is_forced=step.is_forced,
                takes_ownership=step.takes_ownership,
            )
            installer.helm.upgrade(client.access, wanted)
            client.forget_kinds()
        yield wait_until_healthy(
            client,
            step.namespace,
            target.version,
            tuple(target.definitions),
            installer.timeout,
            lambda text: report(step.cluster, text),
        )
    except EdgeError as error:
        yield f"{error.problem}\n{error.hint}".strip() if isinstance(error, ClusterError) else str(error)


def _clear(client: ApiServer, step: InstallStep) -> None:
    """Remove the record of a helm that ended in the middle: no other helm starts while it is there."""
    record = step.record
    if record is None or not record.is_pending:
        return
    try:
        client.delete(_SECRETS.format(step.namespace, record.secret), uid=record.uid)
    except ClusterError as error:
        if error.status != _NOT_FOUND:
            raise

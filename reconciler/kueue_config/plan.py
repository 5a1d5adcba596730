"""Plans the rollout of Kueue's Configuration: decides whether it changes, and which workers must be ready first.

The manager's Kueue watches every enabled kind of jobs on every worker. If it cannot, it disconnects from the worker and
loses the jobs that run there.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from reconciler.kueue.configuration import (
    ConfigurationError,
    check_configuration,
    patched,
    read_configuration,
    read_settings,
    write_configuration,
)
from reconciler.kueue.frameworks import JobKind, job_kinds
from reconciler.kueue.kinds import first_version
from reconciler.kueue_config.model import APPLIED, FAILED, PREVIOUS, Rollout, SeenConfiguration, short_name
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.fields import differences, path_text
from reconciler.plan.model import Action, Cause, Change, FieldChange, Reason, Refusal, Refused
from reconciler.spec.enums import Conflicts, Policy
from reconciler.spec.model import Cluster
from reconciler.state.model import ClusterView, Prediction
from reconciler.state.values import digest

# Before all other waves: what Kueue accepts may depend on its Configuration.
WAVE = -1
# These tools revert the whole ConfigMap as soon as it changes; Helm alone writes it only with the next upgrade.
GITOPS_TRACKERS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
# A client that reverts the ConfigMap this soon after the restart of Kueue manages it, and would revert it again.
_QUIET = timedelta(minutes=10)
_RELEASE_MARK = "meta.helm.sh/release-name"


def ready_workers(change: Change, workers: Sequence[ClusterView], wanted: Sequence[Prediction]) -> Change | Refusal:
    """The rollout, after the changes on all workers; refused if a worker does not serve an added kind.

    `wanted` are the objects of all clusters: kinds that the same plan defines count as served.
    """
    added = _added(change.rollout) if change.rollout else frozenset()
    if change.rollout is None or not added:
        return change
    lacking = [*_lacking(added, workers, wanted)]
    if lacking:
        way_out = "install these kinds there first, or do not enable the frameworks on the manager"
        return Refusal(Refused.UNREADY, f"{'; '.join(lacking)}: {way_out}", change.ref.cluster, change.ref)
    return change._replace(rollout=replace(change.rollout, after=tuple(view.name for view in workers)))


def _added(rollout: Rollout) -> frozenset[JobKind]:
    try:
        then, now = (job_kinds(read_settings(text)) for text in (rollout.text, rollout.previous))
    except ConfigurationError:
        return frozenset()
    return frozenset(then) - frozenset(now)


def _lacking(added: frozenset[JobKind], workers: Sequence[ClusterView], wanted: Sequence[Prediction]) -> Iterator[str]:
    coming: set[tuple[ClusterName, str]] = {
        (one.ref.cluster, one.ref.name) for one in wanted if one.ref.kind == "CustomResourceDefinition"
    }
    for view in workers:
        missing = sorted(
            str(kind)
            for kind in added
            if (kind.group, kind.kind) not in view.served and (view.name, f"{kind.plural}.{kind.group}") not in coming
        )
        if missing and view.is_reachable:
            yield f"{view.name} does not serve {', '.join(missing)}"


def decide_configuration(
    cluster: Cluster, seen: SeenConfiguration, policy: Policy, wanted: Collection[Ref]
) -> Change | Refusal | None:
    """Decide about the Configuration; None if it already contains what the spec sets."""
    ref = Ref(seen.cluster, "", "ConfigMap", seen.namespace, seen.name)
    try:
        now = read_configuration(seen.text)
    except ConfigurationError as error:
        return _refused(ref, f"the text in the cluster {error}; kfleet cannot merge into it")
    then = patched(now, cluster.kueue.configuration)
    if then is now and not seen.annotation(PREVIOUS):
        return None
    return (
        _refuse_gitops_tracker(ref, seen, policy, wanted)
        or (None if then is now else _refuse_fight(ref, seen, policy, digest(cluster.kueue.configuration)))
        or _refuse_wrong(ref, then, seen, cluster)
        or (_change(ref, now, then, seen, cluster))
    )


def _refuse_gitops_tracker(
    ref: Ref, seen: SeenConfiguration, policy: Policy, wanted: Collection[Ref]
) -> Refusal | None:
    """Refuse if another tool manages the ConfigMap: it would revert it, and Kueue would be restarted without end."""
    if ref in wanted:
        problem = "the fleet also has this ConfigMap as a native document; set this there, or only in spec.kueue.config"
        return Refusal(Refused.CONTESTED, problem, ref.cluster, ref)
    marks = {**(seen.metadata.get("labels") or {}), **(seen.metadata.get("annotations") or {})}
    tracker = next((tool for mark, tool in GITOPS_TRACKERS.items() if mark in marks), "")
    if tracker and policy.conflicts is Conflicts.REFUSE:
        problem = f"{tracker} manages it and would revert it; set this there, or set policy.conflicts to take"
        return Refusal(Refused.CONTESTED, problem, ref.cluster, ref)
    return None


def _refuse_fight(ref: Ref, seen: SeenConfiguration, policy: Policy, patch: str) -> Refusal | None:
    """Refuse if the ConfigMap was reverted right after the restart: not every tool marks what it manages."""
    if seen.started_for != patch or abs(seen.started_ago) > _QUIET or policy.conflicts is Conflicts.TAKE:
        return None
    minutes = _QUIET.seconds // 60
    problem = f"Kueue was restarted for it less than {minutes} minutes ago, and another client reverted it since then"
    hint = "set this in the tool that manages it, set policy.conflicts to take, or wait that long"
    return Refusal(Refused.CONTESTED, f"{problem}; {hint}", ref.cluster, ref)


def _refuse_wrong(ref: Ref, then: Manifest, seen: SeenConfiguration, cluster: Cluster) -> Refusal | None:
    version = first_version(seen.release, cluster.kueue.version)
    violations = check_configuration(then, version)
    if violations:
        return _refused(ref, f"Kueue {version}: {'; '.join(str(one) for one in violations)}")
    if seen.has_gate_flag and then.get("featureGates"):
        problem = f"featureGates: {seen.deployment} sets gates on its command line, and Kueue accepts only one of both"
        return _refused(ref, f"{problem}; remove --feature-gates there, or featureGates here")
    failed, _, why = seen.annotation(FAILED).partition(" ")
    if failed == short_name(write_configuration(then)):
        hint = f"change spec.kueue.config, or remove the annotation {FAILED} to try again"
        return _refused(ref, f"Kueue did not start with it and was rolled back: {why}; {hint}")
    return None


def _change(ref: Ref, now: Manifest, then: Manifest, seen: SeenConfiguration, cluster: Cluster) -> Change:
    patch = digest(cluster.kueue.configuration)
    cause = Cause.DRIFT if seen.annotation(APPLIED) == patch else Cause.SPEC
    fields = tuple(FieldChange(path_text(path), old, new, cause) for path, old, new in differences(now, then))
    text = write_configuration(then) if fields else seen.text
    return Change(
        ref,
        Action.UPDATE,
        Reason.CHANGED if fields else Reason.UNFINISHED,
        WAVE,
        fields=fields,
        uid=seen.uid,
        seen=short_name(seen.text),
        wanted=short_name(text),
        notes=tuple(_notes(seen)),
        rollout=Rollout(
            namespace=seen.namespace,
            name=seen.name,
            deployment=seen.deployment,
            text=text,
            # During an unfinished rollout, Kueue was last observed running with the previous text.
            previous=seen.annotation(PREVIOUS) or seen.text,
            version=seen.version,
            patch=patch,
        ),
    )


def _notes(seen: SeenConfiguration) -> list[str]:
    helm = (seen.metadata.get("annotations") or {}).get(_RELEASE_MARK)
    notes = [f"restarts {seen.deployment} and waits until it is ready; if it does not start, both are rolled back"]
    if helm:
        notes.append(f"the Helm release {helm} also owns it: an upgrade writes its own values until kfleet runs again")
    return notes


def _refused(ref: Ref, problem: str) -> Refusal:
    return Refusal(Refused.CONFIGURATION, problem, ref.cluster, ref)

"""Decides what happens to Kueue's own Configuration on a cluster.

Decision: its ConfigMap belongs to whoever installed Kueue. kfleet is no owner of it: it is in no inventory and is never
deleted; one key of it is patched, where the spec sets something in it, and Kueue is restarted to read it.
"""

from collections.abc import Collection
from datetime import timedelta

from reconciler.kueue.configuration_patch import ConfigurationError, patched, read_configuration, write_configuration
from reconciler.kueue.configuration_rules import check_configuration
from reconciler.kueue.kinds import first_version
from reconciler.objects import Manifest, Ref
from reconciler.plan.fields import differences, digest, path_text
from reconciler.plan.model import Action, Cause, Change, FieldChange, Reason, Refusal, Refused
from reconciler.rollout import APPLIED, FAILED, PREVIOUS, Rollout, SeenConfiguration, short_name
from reconciler.spec.choices import Conflicts, Policy
from reconciler.spec.model import Cluster

# Before everything else: what Kueue accepts may depend on it.
WAVE = -1
# They write the whole ConfigMap again as soon as it changes; Helm by itself does so with the next release only.
_KEEPERS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
# Whoever writes over it this soon after Kueue was restarted for it keeps it, and would do so again.
_QUIET = timedelta(minutes=10)
_RELEASE_MARK = "meta.helm.sh/release-name"


def decide_configuration(
    cluster: Cluster, seen: SeenConfiguration, policy: Policy, wanted: Collection[Ref]
) -> Change | Refusal | None:
    """None where it says already what the spec sets in it."""
    ref = Ref(seen.cluster, "", "ConfigMap", seen.namespace, seen.name)
    try:
        now = read_configuration(seen.text)
    except ConfigurationError as error:
        return _refused(ref, f"the text in the cluster {error}; nothing can be merged into it")
    then = patched(now, cluster.kueue.configuration)
    if then is now and not seen.annotation(PREVIOUS):
        return None
    return (
        _refuse_keeper(ref, seen, policy, wanted)
        or (None if then is now else _refuse_fight(ref, seen, policy, digest(cluster.kueue.configuration)))
        or _refuse_wrong(ref, then, seen, cluster)
        or (_change(ref, now, then, seen, cluster))
    )


def _refuse_keeper(ref: Ref, seen: SeenConfiguration, policy: Policy, wanted: Collection[Ref]) -> Refusal | None:
    """Whoever else keeps the ConfigMap would write it back, and Kueue would be restarted without end."""
    if ref in wanted:
        problem = "the fleet holds this ConfigMap as a document too; say it there, or in spec.kueue.config only"
        return Refusal(Refused.CONTESTED, problem, ref.cluster, ref)
    marks = {**(seen.metadata.get("labels") or {}), **(seen.metadata.get("annotations") or {})}
    keeper = next((tool for mark, tool in _KEEPERS.items() if mark in marks), "")
    if keeper and policy.conflicts is Conflicts.REFUSE:
        problem = f"{keeper} keeps it and would write it back; set this there, or set policy.conflicts to take"
        return Refusal(Refused.CONTESTED, problem, ref.cluster, ref)
    return None


def _refuse_fight(ref: Ref, seen: SeenConfiguration, policy: Policy, patch: str) -> Refusal | None:
    """Not every keeper leaves a mark: one that was just written over is known by that."""
    if seen.started_for != patch or abs(seen.started_ago) > _QUIET or policy.conflicts is Conflicts.TAKE:
        return None
    minutes = _QUIET.seconds // 60
    problem = f"Kueue was restarted for it less than {minutes} minutes ago, and somebody wrote it back since then"
    hint = "set this where it is kept, set policy.conflicts to take, or wait that long"
    return Refusal(Refused.CONTESTED, f"{problem}; {hint}", ref.cluster, ref)


def _refuse_wrong(ref: Ref, then: Manifest, seen: SeenConfiguration, cluster: Cluster) -> Refusal | None:
    version = first_version(seen.release, cluster.kueue.version)
    violations = check_configuration(then, version)
    if violations:
        return _refused(ref, f"Kueue {version}: {'; '.join(str(one) for one in violations)}")
    if seen.has_gate_flag and then.get("featureGates"):
        problem = f"featureGates: {seen.deployment} sets gates on its command line, and Kueue takes only one of both"
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
            seen.namespace,
            seen.name,
            seen.deployment,
            text,
            # While a rollout is open, the last text that Kueue was seen to run with is the one before.
            seen.annotation(PREVIOUS) or seen.text,
            seen.version,
            patch,
        ),
    )


def _notes(seen: SeenConfiguration) -> list[str]:
    helm = (seen.metadata.get("annotations") or {}).get(_RELEASE_MARK)
    notes = [f"restarts {seen.deployment} and waits until it is ready; if it does not start, both are put back"]
    if helm:
        notes.append(f"the Helm release {helm} holds it too: an upgrade writes its own values until kfleet runs again")
    return notes


def _refused(ref: Ref, problem: str) -> Refusal:
    return Refusal(Refused.CONFIGURATION, problem, ref.cluster, ref)

"""KF010 to KF016, KF069, KF100 upwards: releases of Kueue, versions of its API, and what an API server would report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.kueue.conversion import OLD_VERSIONS, CannotExpressError, to_canonical, to_version
from reconciler.kueue.kinds import (
    CANONICAL,
    GROUP,
    KIND_BY_NAME,
    NEWEST,
    OLDEST,
    V1BETA2_SINCE,
    KueueVersion,
    kind_of,
    newest_served,
)
from reconciler.kueue.reading import QUEUE_LABEL, as_map, as_text, at
from reconciler.kueue.rules.kinds import check_object
from reconciler.kueue.rules.structure import RULES as SERVER_RULES
from reconciler.kueue.rules.structure import RuleViolation, check_other_metadata
from reconciler.lint.model import (
    Remark,
    Rule,
    Severity,
    View,
    about,
    field_path,
    is_kueue,
    is_native,
    is_supported,
    listed,
    misnamed,
)
from reconciler.objects import Manifest, group_of
from reconciler.render.model import DesiredObject
from reconciler.spec.files import FieldPath
from reconciler.spec.model import Cluster, NativeObject

VERSION = ("spec", "kueue", "version")
LABELS: FieldPath = ("metadata", "labels")
# The path of the label that Kueue reads, for each kind of job. MiniClusters have separate rules.
JOBS: Mapping[tuple[str, str], FieldPath] = {
    ("batch", "Job"): LABELS,
    ("batch", "CronJob"): ("spec", "jobTemplate", "metadata", "labels"),
    ("jobset.x-k8s.io", "JobSet"): LABELS,
    ("kubeflow.org", "MPIJob"): LABELS,
    ("kubeflow.org", "PyTorchJob"): LABELS,
    ("kubeflow.org", "TFJob"): LABELS,
    ("kubeflow.org", "XGBoostJob"): LABELS,
    ("kubeflow.org", "PaddleJob"): LABELS,
    ("kubeflow.org", "JAXJob"): LABELS,
    ("trainer.kubeflow.org", "TrainJob"): LABELS,
    ("ray.io", "RayJob"): LABELS,
    ("ray.io", "RayCluster"): LABELS,
    ("ray.io", "RayService"): LABELS,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): LABELS,
    ("workload.codeflare.dev", "AppWrapper"): LABELS,
}
RULES = (
    Rule(
        "KF010",
        Severity.ERROR,
        "Kueue is a supported release",
        "kfleet does not know what an older release understands",
        can_be_silenced=False,
    ),
    Rule(
        "KF011",
        Severity.ERROR,
        "object can be written for the cluster's Kueue",
        "an older release would drop the field silently, and what it says would not hold",
        can_be_silenced=False,
    ),
    Rule(
        "KF012",
        Severity.WARNING,
        "Kueue is a release that kfleet knows",
        "a newer release may have limits and fields that are not checked",
    ),
    Rule(
        "KF013",
        Severity.WARNING,
        "native Kueue object is written in the newest API version",
        "old versions are translated, and the plan shows the new names",
    ),
    Rule(
        "KF014",
        Severity.ERROR,
        "Kueue has the kind",
        "the API server refuses an object of a kind that it does not know",
        can_be_silenced=False,
    ),
    Rule(
        "KF015",
        Severity.WARNING,
        "job names a queue",
        "without the label Kueue lets the job run at once, outside of every quota",
    ),
    Rule(
        "KF016",
        Severity.WARNING,
        "job names a LocalQueue of its namespace",
        "a job whose queue does not exist waits for ever",
    ),
    Rule(
        "KF069",
        Severity.WARNING,
        "git holds no Secret in clear text",
        "everyone who can read the repository, and its history, can read the Secret",
    ),
    *(Rule(rule.id, Severity.ERROR, rule.title, rule.why, can_be_silenced=False) for rule in SERVER_RULES),
)
UNKNOWN_FIELD = "KF101"
# KF024 reports this for a Queue; it also handles shares that have no number yet.
LENDING_ABOVE_NOMINAL = "KF127"


def check_releases(view: View) -> Iterator[Remark]:
    for name, version in view.versions.items():
        document = view.clusters[name].document
        if not is_supported(version):
            problem = f"Kueue {version} is older than {OLDEST}, the oldest release that kfleet supports"
            yield Remark("KF010", document, VERSION, problem, f"upgrade Kueue; {NEWEST} is the newest known")
        if (version.major, version.minor) > (NEWEST.major, NEWEST.minor):
            problem = (
                f"Kueue {version} is newer than {NEWEST}, the newest known release: kfleet treats it like that one"
            )
            yield Remark("KF012", document, VERSION, problem)


def check_api_versions(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        version = entry.document.api_version.rpartition("/")[2]
        clusters = (cluster.name for cluster in view.spec.targeted(entry.targets))
        newer = [name for name in clusters if view.versions[name] >= V1BETA2_SINCE]
        is_old = is_kueue(entry.document) and version in OLD_VERSIONS and entry.document.kind in KIND_BY_NAME
        if is_old and newer:
            notes = "; ".join(to_canonical(entry.manifest).notes)
            problem = f"{version} is converted to {CANONICAL}, which {listed(newer)} serves" + (
                f": {notes}" if notes else ""
            )
            hint = f"write it as {GROUP}/{CANONICAL}, which Kueue {V1BETA2_SINCE} and newer serve; see Fleet.spec.lint"
            yield Remark("KF013", entry.document, ("apiVersion",), problem, hint)


def check_kinds(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        document = entry.document
        if is_kueue(document) and document.kind not in KIND_BY_NAME:
            problem, hint = f"Kueue has no kind {document.kind!r}", f"there are {', '.join(KIND_BY_NAME)}"
            yield misnamed(Remark("KF014", document, ("kind",), problem, hint), document.kind, KIND_BY_NAME)


def check_jobs(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        path = JOBS.get((group_of(entry.manifest), entry.document.kind))
        if path is None:
            continue
        queue = as_text(at(entry.manifest, *map(str, path), QUEUE_LABEL))
        if queue:
            yield from _check_queue(view, entry, (*path, QUEUE_LABEL), queue)
        else:
            problem = f"the {entry.document.kind} has no label {QUEUE_LABEL}: it runs at once and bypasses every queue"
            yield Remark("KF015", entry.document, path, problem, "label it with the name of a LocalQueue")


def _check_queue(view: View, entry: NativeObject, path: FieldPath, queue: str) -> Iterator[Remark]:
    namespace = entry.document.namespace or "default"
    for cluster in view.spec.targeted(entry.targets):
        known = view.of(cluster.name, "LocalQueue")
        if (namespace, queue) not in known:
            names = [name for there, name in known if there == namespace]
            problem = f"there is no LocalQueue {namespace}/{queue} in the fleet"
            hint = "the job would wait forever"
            remark = Remark(
                rule="KF016", document=entry.document, path=path, problem=problem, hint=hint, cluster=cluster.name
            )
            yield misnamed(remark, queue, names)


def check_secrets(view: View) -> Iterator[Remark]:
    """Report Secrets with content: an encrypted one is of another kind, such as SealedSecret or ExternalSecret."""
    for entry in view.spec.objects:
        is_secret = entry.document.kind == "Secret" and not entry.document.group
        field = next((name for name in ("stringData", "data") if entry.manifest.get(name)), "")
        if is_secret and field:
            problem = "is readable for everyone who can read the repository, in all of its history"
            hint = (
                "create the Secret outside of git, or commit a SealedSecret or an ExternalSecret, and change the value"
            )
            yield Remark("KF069", entry.document, (field,), problem, hint)


@dataclass(frozen=True, slots=True)
class ServerVerdict:
    """The problems of one manifest on one release: fields that cannot be written, and others."""

    unwritable: tuple[str, ...]
    violations: tuple[RuleViolation, ...]


NOTHING_WRONG = ServerVerdict((), ())


def check_objects(view: View, spoilt: frozenset[int]) -> Iterator[Remark]:
    """`spoilt` are documents (by id) with errors of their own: errors of their objects would only repeat those."""
    verdicts: dict[tuple[str, KueueVersion, frozenset[str]], ServerVerdict] = {}
    gates = {cluster.name: gates_of(cluster) for cluster in view.spec.clusters}
    for entry in view.desired.objects:
        version = view.versions[entry.ref.cluster]
        if kind_of(entry.manifest) is None or not is_supported(version):
            continue
        if id(entry.document) in spoilt and not is_native(entry):
            continue
        # Most objects are identical on many clusters: each distinct manifest is checked once.
        key = (repr(entry.manifest), version, gates[entry.ref.cluster])
        if key not in verdicts:
            verdicts[key] = _check(entry.manifest, version, gates[entry.ref.cluster])
        yield from _remarks(entry, verdicts[key], version)


def check_other_objects(view: View) -> Iterator[Remark]:
    """Of objects of other groups kfleet knows the metadata alone; a wrong label would stop the whole apply there."""
    for entry in view.spec.objects:
        if kind_of(entry.manifest) is None:
            for one in check_other_metadata(entry.manifest):
                yield Remark(one.rule, entry.document, field_path(one.field), one.problem, one.hint)


def gates_of(cluster: Cluster) -> frozenset[str]:
    """Return the feature gates that the fleet enables."""
    gates = as_map(cluster.kueue.configuration.get("featureGates"))
    return frozenset(name for name, is_on in gates.items() if is_on is True)


def _check(manifest: Manifest, version: KueueVersion, gates: frozenset[str]) -> ServerVerdict:
    violations = check_object(manifest, version, gates)
    unwritable = _find_unwritable(manifest, version) if version < NEWEST else ()
    if unwritable:
        always = {one.field for one in check_object(manifest, NEWEST, gates) if one.rule == UNKNOWN_FIELD}
        violations = tuple(one for one in violations if one.rule != UNKNOWN_FIELD or one.field in always)
    return ServerVerdict(unwritable, violations) if unwritable or violations else NOTHING_WRONG


def _find_unwritable(manifest: Manifest, version: KueueVersion) -> tuple[str, ...]:
    kind = kind_of(manifest)
    if kind is None:
        return ()
    try:
        to_version(manifest, newest_served(kind, version), version)
    except CannotExpressError as error:
        return error.problems
    return ()


def _remarks(entry: DesiredObject, verdict: ServerVerdict, version: KueueVersion) -> Iterator[Remark]:
    for problem in verdict.unwritable:
        field, _, rest = problem.partition(" ")
        path = field_path(field) if field.startswith(("spec", "metadata")) else ()
        yield about(
            entry, "KF011", path, rest if path else problem, f"remove the field, or upgrade Kueue from {version}"
        )
    for violation in verdict.violations:
        if violation.rule != LENDING_ABOVE_NOMINAL or entry.document.kind != "Queue":
            yield about(entry, violation.rule, field_path(violation.field), violation.problem, violation.hint)

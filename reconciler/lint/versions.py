"""KF010 to KF016 and KF069: releases of Kueue, versions of its API, and jobs and Secrets among the native objects."""

from collections.abc import Iterator, Mapping

from reconciler.kueue.conversion import OLD_VERSIONS, to_canonical
from reconciler.kueue.kinds import CANONICAL, GROUP, KIND_BY_NAME, NEWEST, OLDEST, V1BETA2_SINCE
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.resources import QUEUE_LABEL
from reconciler.lint.model import Remark, Rule, Severity, View, is_kueue, is_supported, listed, misnamed
from reconciler.objects import group_of
from reconciler.spec.document import FieldPath
from reconciler.spec.model import NativeObject

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
)


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

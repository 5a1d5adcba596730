"""KF010 to KF014: releases of Kueue and versions of its API."""

from collections.abc import Iterator

from reconciler.kueue.kinds import CANONICAL, GROUP, KIND_BY_NAME, NEWEST, OLDEST, V1BETA2_SINCE
from reconciler.kueue.upgrade import OLD_VERSIONS, to_canonical
from reconciler.lint.model import Remark
from reconciler.lint.remarks import listed, misnamed
from reconciler.lint.view import View, is_kueue, is_supported

VERSION = ("spec", "kueue", "version")


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

"""KF075 and KF076: the release of Kueue that the fleet installs, and the values of its chart."""

from collections.abc import Iterator

from reconciler.kueue.configuration import ConfigurationError, refused_gates
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.kueue_install.model import BROKEN_REMEDY, broken_text, start_problems, version_of, wanted_version
from reconciler.lint.model import Remark, Rule, Severity, View
from reconciler.spec.files import FieldPath
from reconciler.spec.model import Cluster, KueueInstall

VERSION: FieldPath = ("spec", "kueue", "version")
INSTALL: FieldPath = ("spec", "kueue", "install")
TEXT = ("managerConfig", "controllerManagerConfigYaml")
GATES = ("controllerManager", "featureGates")

RULES = (
    Rule(
        "KF075",
        Severity.ERROR,
        "kueue.install is a release that works, with values that it starts with",
        "kfleet kueue install and upgrade refuse it, and with helm alone Kueue would not start",
        can_be_silenced=False,
    ),
    Rule(
        "KF076",
        Severity.ERROR,
        "kueue.version is the release of kueue.install",
        "objects would be checked for another release than the one that is installed",
        can_be_silenced=False,
    ),
)


def check_installs(view: View) -> Iterator[Remark]:
    for cluster in view.spec.clusters:
        install = cluster.kueue.install
        version = wanted_version(install)
        if install is None or version is None:
            continue
        yield from _check_release(cluster, version)
        yield from _check_values(cluster, install, version)


def _check_release(cluster: Cluster, version: KueueVersion) -> Iterator[Remark]:
    if text := broken_text(version):
        yield Remark("KF075", cluster.document, (*INSTALL, "version"), text, BROKEN_REMEDY)
    assumed = version_of(cluster.kueue.version)
    if assumed and (assumed.major, assumed.minor) != (version.major, version.minor):
        problem = f"is {cluster.kueue.version}, but kueue.install.version is {version}"
        yield Remark("KF076", cluster.document, VERSION, problem, "leave it out: the installed release is assumed")


def _check_values(cluster: Cluster, install: KueueInstall, version: KueueVersion) -> Iterator[Remark]:
    text, path = as_text(at(install.values, *TEXT)), (*INSTALL, "values", *TEXT)
    try:
        for problem in start_problems(text, version) if text else ():
            yield Remark("KF075", cluster.document, path, problem.message, problem.remedy)
    except ConfigurationError as error:
        yield Remark("KF075", cluster.document, path, str(error))
    gates = {as_text(at(gate, "name")): at(gate, "enabled") is True for gate in as_list(at(install.values, *GATES))}
    for refused in refused_gates(gates, version):
        text = f"Kueue {version} does not start: {refused}"
        yield Remark("KF075", cluster.document, (*INSTALL, "values", *GATES), text, "remove it")

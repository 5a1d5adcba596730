"""What helm keeps in Secrets and renders from a chart."""

from datetime import UTC, datetime

import pytest

from reconciler.kueue.configuration import ConfigurationError
from reconciler.kueue_install.records import (
    RecordError,
    are_same_values,
    chart_values,
    labelled_version,
    make_target,
    newest_record,
    owner_of,
)
from reconciler.spec.model import KueueInstall
from tests import fast_yaml
from tests.unit.kueue_install.on_paper import CONFIGURATION, QUEUES, chart, helm_secret

TEXT = fast_yaml.safe_dump(CONFIGURATION)
DEFAULTS = {"managerConfig": {"controllerManagerConfigYaml": TEXT}}
MANIFEST = f"""---
# Source: kueue/templates/crd/queues.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    name: other
  name: '{QUEUES}'
spec:
  names:
    kind: ClusterQueue
---
kind: ConfigMap
metadata:
  name: kueue-manager-config
"""


def content(revision: int, status: str = "deployed") -> dict[str, object]:
    return {
        "version": revision,
        "info": {"status": status},
        "chart": {"metadata": {"version": "0.19.0"}},
        "config": {"controllerManager": {"replicas": 2}},
        "manifest": MANIFEST,
    }


def test_newest_revision_is_read_by_its_number() -> None:
    secrets = [helm_secret(content(number, "failed" if number == 10 else "superseded"), number) for number in (9, 10)]
    found = newest_record(secrets)
    assert found is not None
    assert (found.revision, found.status, found.chart) == (10, "failed", "0.19.0")
    assert found.values == {"controllerManager": {"replicas": 2}}
    assert found.definitions == {QUEUES}
    assert (found.secret, found.uid) == ("sh.helm.release.v1.kueue.v10", "uid-10")
    assert found.written == datetime(2026, 11, 19, 12, tzinfo=UTC)


def test_without_a_secret_there_is_no_release() -> None:
    assert newest_record([]) is None


def test_secret_that_helm_did_not_write_is_an_error() -> None:
    with pytest.raises(RecordError, match=r"v1 is not a record of helm"):
        newest_record([{**helm_secret({}), "data": {"release": "bm90IGhlbG0="}}])


def test_values_of_git_get_what_the_fleet_sets_in_the_configuration() -> None:
    values = chart_values(KueueInstall("0.19.0", {"controllerManager": {"replicas": 2}}), {"fairSharing": {}}, DEFAULTS)
    assert values["controllerManager"] == {"replicas": 2}
    text = values["managerConfig"]["controllerManagerConfigYaml"]
    assert fast_yaml.safe_load(text) == {**CONFIGURATION, "fairSharing": {}}


def test_values_of_git_stay_as_they_are_without_a_configuration() -> None:
    install = KueueInstall("0.19.0", {"controllerManager": {"replicas": 2}})
    assert chart_values(install, {}, DEFAULTS) is install.values


def test_configuration_of_the_values_goes_before_that_of_the_chart() -> None:
    own = {"managerConfig": {"controllerManagerConfigYaml": fast_yaml.safe_dump({**CONFIGURATION, "fairSharing": {}})}}
    values = chart_values(KueueInstall("0.19.0", own), {"clientConnection": {"qps": 5}}, DEFAULTS)
    found = fast_yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert found == {**CONFIGURATION, "fairSharing": {}, "clientConnection": {"qps": 5}}


def test_values_with_another_text_than_a_configuration_are_an_error() -> None:
    wrong = {"managerConfig": {"controllerManagerConfigYaml": "kind: Other"}}
    with pytest.raises(ConfigurationError):
        chart_values(KueueInstall("0.19.0", wrong), {"fairSharing": {}}, DEFAULTS)


def test_values_are_compared_without_the_configuration_that_kfleet_merges() -> None:
    install = KueueInstall("0.19.0", {"controllerManager": {"replicas": 2}})
    patch: dict[str, object] = {"fairSharing": {}}
    sent = chart_values(install, patch, DEFAULTS)
    assert are_same_values(sent, install, patch)
    assert not are_same_values(sent, install, {})
    assert not are_same_values({**sent, "controllerManager": {"replicas": 3}}, install, patch)


def test_target_has_the_configuration_the_gates_and_the_versions_of_definitions() -> None:
    target = chart("0.19.0", CONFIGURATION, "--feature-gates=A=true,B=false", definitions=(QUEUES,))
    assert fast_yaml.safe_load(target.configuration) == CONFIGURATION
    assert target.gates == {"A": True, "B": False}
    assert target.definitions == {QUEUES: ("v1beta2", "v1beta1")}


def test_chart_of_no_release_is_an_error() -> None:
    with pytest.raises(RecordError, match="'main', which is not a release"):
        make_target("main", {}, ())


def test_owner_is_namespace_and_name_of_the_release() -> None:
    names = {"meta.helm.sh/release-name": "kueue", "meta.helm.sh/release-namespace": "batch"}
    assert owner_of({"metadata": {"annotations": names}}) == "batch/kueue"
    assert owner_of({"metadata": {}}) == owner_of(None) == ""


@pytest.mark.parametrize(("label", "release"), [("v0.19.0", "v0.19.0"), ("main", ""), ("", "")])
def test_label_of_the_chart_names_the_release(label: str, release: str) -> None:
    assert labelled_version({"metadata": {"labels": {"app.kubernetes.io/version": label}}}) == release

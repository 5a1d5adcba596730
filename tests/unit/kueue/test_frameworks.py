"""What MultiKueue needs on a worker, by the frameworks of its manager."""

import pytest

from reconciler.kueue.configuration import (
    SHIPPED_FRAMEWORKS,
    ConfigurationError,
    KueueSettings,
    assumed_settings,
    read_settings,
)
from reconciler.kueue.frameworks import is_allowed, job_kinds, missing_rights, worker_rules

CONFIGURATION = """\
apiVersion: config.kueue.x-k8s.io/{version}
kind: Configuration
integrations:
  frameworks: [batch/job, kubeflow.org/jaxjob, deployment]
multiKueue:
  origin: lyon
  externalFrameworks: [{{name: Spark.v1.example.org}}, {{name: Policy.v1beta1.example.org}}]
featureGates: {{MultiKueueManagerQuotaAutomation: true}}
"""


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_settings_are_read_from_both_versions_of_the_configuration(version: str) -> None:
    assert read_settings(CONFIGURATION.format(version=version)) == KueueSettings(
        ("batch/job", "kubeflow.org/jaxjob", "deployment"),
        ("Spark.v1.example.org", "Policy.v1beta1.example.org"),
        "lyon",
        has_quota_automation=True,
    )


def test_settings_of_a_configuration_that_names_nothing_are_those_of_kueues_code() -> None:
    assert read_settings("kind: Configuration") == KueueSettings(("batch/job",), (), "multikueue")


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "is not valid YAML"), ("[]", "is not a Conf"), ("kind: Pod", "is not a Conf")]
)
def test_settings_of_another_text_are_an_error(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        read_settings(text)


def test_settings_of_an_unseen_kueue_are_the_shipped_ones_with_the_fleets_own() -> None:
    assert assumed_settings({}).frameworks == SHIPPED_FRAMEWORKS
    assert assumed_settings({"integrations": {"frameworks": ["pod"]}}).frameworks == ("pod",)


def test_job_kinds_leave_out_what_has_no_adapter_and_guess_plurals_as_kubernetes_does() -> None:
    kinds = job_kinds(read_settings(CONFIGURATION.format(version="v1beta2")))
    assert [(str(kind), kind.plural) for kind in kinds] == [
        ("Job.batch", "jobs"),
        ("JAXJob.kubeflow.org", "jaxjobs"),
        ("Spark.example.org", "sparks"),
        ("Policy.example.org", "policies"),
    ]


def test_rules_hold_one_entry_per_group_and_need() -> None:
    rules = worker_rules(KueueSettings(("kubeflow.org/tfjob", "kubeflow.org/mpijob", "batch/job")))
    assert [(rule["apiGroups"], rule["resources"], "patch" in rule["verbs"]) for rule in rules] == [
        (["kueue.x-k8s.io"], ["workloads"], True),
        (["kueue.x-k8s.io"], ["workloads/status"], True),
        (["batch"], ["jobs"], True),
        (["kubeflow.org"], ["mpijobs", "tfjobs"], False),
    ]


def test_rules_show_the_queues_to_a_manager_that_adds_up_their_quota() -> None:
    assert ["clusterqueues", "localqueues"] in [
        rule["resources"] for rule in worker_rules(KueueSettings(has_quota_automation=True))
    ]
    assert ["clusterqueues", "localqueues"] not in [rule["resources"] for rule in worker_rules(KueueSettings())]


def test_missing_rights_are_none_under_the_rules_themselves_and_named_without_them() -> None:
    settings = KueueSettings(("batch/job",))
    rules = worker_rules(settings)
    assert list(missing_rights(settings, rules)) == []
    assert list(missing_rights(settings, rules[:2])) == ["create, delete, get, list, patch, watch jobs.batch"]
    assert list(missing_rights(settings, [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])) == []


def test_right_to_single_objects_is_not_enough() -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["one"]}
    assert not is_allowed([rule], "get", "", "pods")
    assert is_allowed([{**rule, "resourceNames": []}], "get", "", "pods")
    assert is_allowed([{**rule, "resourceNames": [], "resources": ["*/status"]}], "get", "", "pods/status")

"""The settings of a Kueue by its ConfigMap, on values: as it will be, and as it is."""

from dataclasses import replace
from typing import Any

from reconciler.kueue.configuration import patched, read_configuration, write_configuration
from reconciler.kueue_config.model import FAILED, PREVIOUS, short_name
from reconciler.multikueue.observe import expected_settings, running_settings
from tests.builders import spec_of

HUB = spec_of().clusters[0]
PATCH = {"integrations": {"frameworks": {"add": ["pod"]}}}
CLUSTER = replace(HUB, kueue=replace(HUB.kueue, configuration=PATCH))


def text(*frameworks: str) -> str:
    listed = ", ".join(frameworks)
    head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    return f"{head}integrations: {{frameworks: [{listed}]}}\n"


def config_map(content: str, **annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}, "data": {"controller_manager_config.yaml": content}}


def test_settings_will_be_as_the_fleet_says_unless_kueue_did_not_start_with_them() -> None:
    old = text("batch/job")
    then = write_configuration(patched(read_configuration(old), PATCH))
    for failed, frameworks in (
        ("", ("batch/job", "pod")),
        ("another text", ("batch/job", "pod")),
        (f"{short_name(then)} CrashLoopBackOff", ("batch/job",)),
    ):
        assert expected_settings(CLUSTER, config_map(old, **{FAILED: failed})).frameworks == frameworks
    assert expected_settings(replace(CLUSTER, suspend=True), config_map(old)).frameworks == ("batch/job",)


def test_settings_are_of_both_texts_while_a_rollout_is_open() -> None:
    assert running_settings(config_map(text("batch/job"))).frameworks == ("batch/job",)
    open_one = config_map(text("batch/job"), **{PREVIOUS: text("batch/job", "pod")})
    assert running_settings(open_one).frameworks == ("batch/job", "pod")

from typing import Any

import pytest

from reconciler.kueue.configuration import (
    SHIPPED_FRAMEWORKS,
    ConfigurationError,
    KueueSettings,
    assumed_settings,
    patched,
    read_configuration,
    read_settings,
    write_configuration,
)

CONTENT = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "clientConnection": {"qps": 300, "burst": 500},
    "integrations": {"frameworks": ["batch/job", "pod"]},
}


@pytest.mark.parametrize(
    ("patch", "path", "value"),
    [
        ({"clientConnection": {"qps": 50}}, "clientConnection", {"qps": 50, "burst": 500}),
        ({"clientConnection": {"qps": None}}, "clientConnection", {"burst": 500}),
        ({"clientConnection": None}, "clientConnection", None),
        ({"fairSharing": {}}, "fairSharing", {}),
        ({"multiKueue": {"origin": "hub", "gcInterval": None}}, "multiKueue", {"origin": "hub"}),
        ({"integrations": {"frameworks": ["pod"]}}, "integrations", {"frameworks": ["pod"]}),
        ({"integrations": {"frameworks": {"add": ["pod"]}}}, "integrations", {"frameworks": ["batch/job", "pod"]}),
        (
            {"integrations": {"frameworks": {"add": ["deployment", "deployment"], "remove": ["pod"]}}},
            "integrations",
            {"frameworks": ["batch/job", "deployment"]},
        ),
        ({"resources": {"excludeResourcePrefixes": {"add": ["a"]}}}, "resources", {"excludeResourcePrefixes": ["a"]}),
        (
            {"managedJobsNamespaceSelector": {"matchLabels": {"add": "yes"}}},
            "managedJobsNamespaceSelector",
            {"matchLabels": {"add": "yes"}},
        ),
    ],
)
def test_patched_changes_what_it_names_and_nothing_else(patch: dict[str, Any], path: str, value: object) -> None:
    result = patched(CONTENT, patch)
    assert result.get(path) == value
    assert {name: part for name, part in result.items() if name != path} == {
        name: part for name, part in CONTENT.items() if name != path
    }


def test_patched_is_the_same_where_nothing_changes() -> None:
    assert patched(CONTENT, {"integrations": {"frameworks": {"add": ["pod"], "remove": ["deployment"]}}}) is CONTENT


def test_patched_adds_to_the_default_of_kueue() -> None:
    assert patched({}, {"integrations": {"frameworks": {"add": ["pod"]}}}) == {
        "integrations": {"frameworks": ["batch/job", "pod"]}
    }


def test_written_configuration_reads_as_it_was() -> None:
    assert read_configuration(write_configuration(CONTENT)) == CONTENT


@pytest.mark.parametrize(
    ("text", "problem"), [("{", "is not valid YAML"), ("kind: Job", "is not a Configuration of Kueue")]
)
def test_read_configuration_refuses_other_texts(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        read_configuration(text)


def test_settings_are_those_after_the_patch() -> None:
    patch = {"integrations": {"frameworks": {"add": ["deployment"]}}, "multiKueue": {"origin": "hub"}}
    read = read_settings(write_configuration(CONTENT), patch)
    assert read == KueueSettings(("batch/job", "pod", "deployment"), origin="hub")
    assert assumed_settings({"integrations": {"frameworks": {"remove": ["pod"]}}}).frameworks == tuple(
        name for name in SHIPPED_FRAMEWORKS if name != "pod"
    )

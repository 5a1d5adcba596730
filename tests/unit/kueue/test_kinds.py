import pytest

from reconciler.kueue.kinds import (
    KIND_BY_NAME,
    KINDS,
    NEWEST,
    KueueVersion,
    KueueVersionError,
    first_version,
    kind_of,
    newest_release,
    newest_served,
    newest_serving,
    parse_version,
    served_versions,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.19", KueueVersion(0, 19)),
        ("v0.16.2", KueueVersion(0, 16, 2)),
        ("0.20.0-rc.1", KueueVersion(0, 20)),
        ("v0.19.0-devel-12-gabc+dirty", KueueVersion(0, 19)),
    ],
)
def test_parse_version_reads_what_releases_are_called(text: str, version: KueueVersion) -> None:
    assert parse_version(text) == version


def test_first_version_is_that_of_the_first_text_that_tells_one() -> None:
    assert first_version("v0.16.2", "0.19") == KueueVersion(0, 16, 2)
    assert first_version("main", "0.16") == KueueVersion(0, 16)
    assert first_version("", "") == NEWEST


@pytest.mark.parametrize("text", ["", "19", "main", "0.19.x", "0.19 ", "v0.19.0\n", "\u0660.\u0661"])
def test_parse_version_refuses_what_is_not_a_release(text: str) -> None:
    with pytest.raises(KueueVersionError, match="is not a release"):
        parse_version(text)


def test_versions_compare_by_number() -> None:
    assert parse_version("0.9") < parse_version("0.10") < parse_version("0.10.1") < parse_version("1.0")
    assert str(parse_version("v0.16.2")) == "0.16.2" and str(parse_version("0.19.0")) == "0.19"


@pytest.mark.parametrize(
    ("kind", "version", "served"),
    [
        ("ClusterQueue", "0.11.4", ("v1beta1",)),
        ("ClusterQueue", "0.15", ("v1beta2", "v1beta1")),
        ("ClusterQueue", "0.19", ("v1beta2", "v1beta1")),
        ("Cohort", "0.12", ("v1alpha1",)),
        ("Cohort", "0.13", ("v1beta1",)),
        ("Topology", "0.13", ("v1alpha1",)),
        ("Topology", "0.14", ("v1beta1",)),
        ("Topology", "0.16", ("v1beta2", "v1beta1")),
        ("ClusterQueue", "0.9", ()),
    ],
)
def test_served_versions_follow_the_release(kind: str, version: str, served: tuple[str, ...]) -> None:
    assert served_versions(KIND_BY_NAME[kind], parse_version(version)) == served
    assert newest_served(KIND_BY_NAME[kind], parse_version(version)) == (served[0] if served else "")


def test_newest_serving_names_the_last_release_of_a_gone_version() -> None:
    assert newest_serving(KIND_BY_NAME["Cohort"], "v1alpha1") == KueueVersion(0, 12)
    assert newest_serving(KIND_BY_NAME["Cohort"], "v1beta1") == NEWEST
    assert newest_serving(KIND_BY_NAME["LocalQueue"], "v1alpha1") is None


def test_kinds_are_the_eleven_of_kueue() -> None:
    assert len(KINDS) == len(KIND_BY_NAME) == 11
    assert {kind.name for kind in KINDS if kind.is_namespaced} == {"LocalQueue", "Workload"}


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"apiVersion": "v1", "kind": "LocalQueue"},
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Queue"},
        {"apiVersion": 2, "kind": "LocalQueue"},
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": ["LocalQueue"]},
    ],
)
def test_kind_of_knows_kueues_objects_only(manifest: dict[str, object]) -> None:
    assert kind_of(manifest) is None


@pytest.mark.parametrize(
    ("served", "release"),
    [
        ({"ClusterQueue": "v1beta2", "Cohort": "v1beta2"}, NEWEST),
        ({"ClusterQueue": "v1beta1", "Cohort": "v1beta1", "Topology": "v1beta1"}, KueueVersion(0, 14)),
        ({"ClusterQueue": "v1beta1", "Cohort": "v1beta1", "Topology": "v1alpha1"}, KueueVersion(0, 13)),
        ({"ClusterQueue": "v1beta1", "Cohort": "v1alpha1"}, KueueVersion(0, 12)),
        ({"ClusterQueue": "v1", "Something": "v1"}, NEWEST),
        ({}, NEWEST),
    ],
)
def test_newest_release_follows_from_the_versions_that_are_served(
    served: dict[str, str], release: KueueVersion
) -> None:
    assert newest_release(served) == release

"""The objects that lead from the manager to its workers, by what was seen of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.kueue.configuration import KueueSettings
from reconciler.multikueue.model import Links, SeenCredential, Token
from reconciler.objects import ApiEndpoint, ClusterName
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired, DesiredObject
from reconciler.snapshot.model import Observations
from reconciler.spec.model import FleetSpec
from tests.builders import labelled_flavor, queue, quota, spec_of
from tests.unit.render.desired_objects import manifest_of

BORN = datetime(2026, 3, 1, tzinfo=UTC)
EAST, WEST = ClusterName("east"), ClusterName("west")
QUEUE = queue("q", quota("cpu", {"cpu": 10}), dispatch="multikueue")
SPEC = spec_of(labelled_flavor("cpu", {"cpu": 10}), QUEUE)
TOKEN = Token("a.b.c", "system:serviceaccount:kueue-system:multikueue-test", BORN, BORN + timedelta(days=3), True)
LINKS = Links(
    BORN,
    "uid-of-hub",
    KueueSettings(("batch/job",), origin="rome"),
    {EAST: ApiEndpoint("https://east"), WEST: ApiEndpoint("https://west", "CA")},
    {EAST: SeenCredential(TOKEN), WEST: SeenCredential(problem="the manager has no token yet")},
)
KUBECONFIG = "hub/Secret/kueue-system/multikueue-east"
ROLE = "east/ClusterRole/kfleet-test-multikueue"


def seen(links: Links | None = LINKS, spec: FleetSpec = SPEC) -> Desired:
    return compute_desired(spec, Observations(links=links))


def entry(desired: Desired, ref: str) -> DesiredObject:
    return next(one for one in desired.objects if str(one.ref) == ref)


def with_credentials(**changes: Any) -> FleetSpec:
    """The fleet with other credentials of its first worker."""
    hub, east, west = SPEC.clusters
    credentials = replace(east.credentials, **changes)
    return replace(SPEC, clusters=(hub, replace(east, credentials=credentials), west))


def test_worker_has_an_account_with_the_rights_of_the_managers_frameworks() -> None:
    desired = seen()
    assert manifest_of(desired, "east/ServiceAccount/kueue-system/multikueue-test")["kind"] == "ServiceAccount"
    binding = manifest_of(desired, "east/ClusterRoleBinding/kfleet-test-multikueue")
    assert binding["roleRef"]["name"] == "kfleet-test-multikueue"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "multikueue-test", "namespace": "kueue-system"}]
    role = manifest_of(desired, ROLE)
    assert [rule["resources"] for rule in role["rules"]] == [["workloads"], ["workloads/status"], ["jobs"]]
    assert role["metadata"]["annotations"] == {"kfleet.dev/multikueue-origin": "rome@uid-of-hub"}


def test_role_serves_the_kueue_that_runs_and_the_one_that_will_run() -> None:
    """A manager whose rollout is refused or rolled back goes on watching what it watched."""
    for now, then in ((("batch/job", "pod"), ("batch/job",)), (("batch/job",), ("batch/job", "pod"))):
        links = replace(LINKS, settings=KueueSettings(then), running=KueueSettings(now))
        rules = manifest_of(seen(links), ROLE)["rules"]
        assert [rule["resources"] for rule in rules[2:]] == [["pods"], ["jobs"]]
    done = replace(LINKS, running=LINKS.settings)
    assert [rule["resources"] for rule in manifest_of(seen(done), ROLE)["rules"][2:]] == [["jobs"]]


def test_role_is_as_shipped_or_as_the_fleet_says_without_an_observation() -> None:
    assert ["trainjobs"] in [rule["resources"] for rule in manifest_of(seen(None), ROLE)["rules"]]
    hub, *workers = SPEC.clusters
    said = replace(hub, kueue=replace(hub.kueue, configuration={"integrations": {"frameworks": ["pod"]}}))
    desired = seen(None, replace(SPEC, clusters=(said, *workers)))
    assert [rule["resources"] for rule in manifest_of(desired, ROLE)["rules"]][2:] == [["pods"]]


def test_role_is_held_where_the_frameworks_were_not_seen() -> None:
    role = entry(seen(replace(LINKS, settings=None)), ROLE)
    assert role.held == "the enabled frameworks of Kueue on hub could not be read"


def test_good_token_is_kept_and_no_part_of_what_is_wanted() -> None:
    kept = entry(seen(), KUBECONFIG)
    assert kept.token
    assert (kept.token.kept, kept.token.reason, kept.notes) == ("a.b.c", "", ())
    later = replace(LINKS, credentials={EAST: SeenCredential(replace(TOKEN, text="x.y.z"))})
    assert entry(seen(later), KUBECONFIG).manifest == kept.manifest


def test_missing_token_is_issued_with_its_reason() -> None:
    options = entry(seen(), "hub/Secret/kueue-system/multikueue-west")
    assert options.token
    assert (options.token.kept, options.token.worker, options.token.lifetime) == ("", WEST, timedelta(days=30))
    assert options.notes == ("a token for 720 h is issued on west: the manager has no token yet",)


def test_token_is_renewed_by_the_clock_of_the_look() -> None:
    before = entry(seen(replace(LINKS, now=BORN + timedelta(days=1, hours=23))), KUBECONFIG)
    after = entry(seen(replace(LINKS, now=BORN + timedelta(days=2))), KUBECONFIG)
    assert before.token
    assert after.token
    assert (before.token.kept, after.token.kept) == ("a.b.c", "")
    assert after.token.reason == "two thirds of the token's lifetime are over, it expires at 2026-03-04 00:00 UTC"


def test_rotation_is_for_the_workers_that_it_names() -> None:
    desired = seen(replace(LINKS, rotations=frozenset({EAST})))
    token = entry(desired, KUBECONFIG).token
    assert token and token.reason == "a new token was requested"


def test_secret_is_held_where_it_or_its_worker_was_not_seen() -> None:
    unread = entry(seen(replace(LINKS, credentials={})), KUBECONFIG)
    unreached = entry(seen(replace(LINKS, endpoints={})), KUBECONFIG)
    assert unread.held == unreached.held == "the credential of east could not be read"
    assert entry(seen(None), KUBECONFIG).held == "its token is issued when the fleet is applied"


def test_address_of_the_fleet_goes_before_the_one_that_kfleet_uses() -> None:
    options = entry(seen(spec=with_credentials(server="https://10.0.0.4")), KUBECONFIG).token
    assert options
    assert options.endpoint == ApiEndpoint("https://10.0.0.4")


def test_secret_or_profile_of_others_is_named_and_nothing_is_written() -> None:
    for changes, source in (
        ({"secret": "own"}, {"kubeConfig": {"locationType": "Secret", "location": "own"}}),
        ({"cluster_profile": "own"}, {"clusterProfileRef": {"name": "own"}}),
    ):
        missing = replace(LINKS, credentials={EAST: SeenCredential(is_missing=True)})
        desired = seen(missing, with_credentials(**changes))
        assert manifest_of(desired, "hub/MultiKueueCluster/east")["spec"] == {"clusterSource": source}
        names = {str(one.ref) for one in desired.objects}
        assert not names & {KUBECONFIG, ROLE, "east/ServiceAccount/kueue-system/multikueue-test"}


def test_login_that_works_stays_until_the_secret_that_replaces_it_is_there() -> None:
    spec = with_credentials(**dict.fromkeys(["secret"], "own"))
    login = {KUBECONFIG, ROLE, "hub/MultiKueueCluster/east", "east/ServiceAccount/kueue-system/multikueue-test"}
    for credentials, why in (
        (
            {EAST: SeenCredential(is_missing=True, is_replacing=True)},
            "does not exist yet, so the working login stays",
        ),
        ({}, "could not be read"),
    ):
        desired = seen(replace(LINKS, credentials=credentials), spec)
        held = {str(one.ref): one.held for one in desired.objects if one.held and one.ref.name != "multikueue-west"}
        assert login < held.keys() and set(held.values()) == {f"the Secret own {why}"}
    arrived = seen(replace(LINKS, credentials={EAST: SeenCredential(TOKEN)}), spec)
    assert not login & {str(one.ref) for one in arrived.objects if one.held}


def test_address_stays_as_it_is_while_the_worker_does_not_answer() -> None:
    there = ApiEndpoint("https://seen-by-the-manager")
    for is_accepted, server in ((None, there.server), (True, "https://east")):
        seen_one = SeenCredential(replace(TOKEN, is_accepted=is_accepted), there)
        options = entry(seen(replace(LINKS, credentials={EAST: seen_one})), KUBECONFIG).token
        assert options
        assert (options.endpoint.server, options.kept) == (server, "a.b.c")

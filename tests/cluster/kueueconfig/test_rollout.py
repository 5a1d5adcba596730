"""Kueue's Configuration on a real cluster: written, restarted, watched, rolled back."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.configuration import roll_out
from reconciler.apply.retry import Patience
from reconciler.objects import ClusterName, Ref
from reconciler.observations.configuration import ConfigurationLook, observe_configurations
from reconciler.plan.model import Action, Change, Reason
from reconciler.rollout import APPLIED, FAILED, PREVIOUS, Rollout
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_KEY
from reconciler.sandbox.processes import is_alive
from tests.cluster.accounts import account
from tests.cluster.engine.worlds import SYSTEM, Answer
from tests.cluster.kueueconfig.worlds import CONFIG_PATH, REF, ConfiguredWorld, forget_start, kept_configuration
from tests.cluster.run.controllers import Controller
from tests.support import eventually

# Kueue checks this when it starts, and kfleet does not know better.
CONTRADICTION = {"tls": {"minVersion": "VersionTLS13", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]}}
POD = {"integrations": {"frameworks": {"add": ["pod"]}}}


@pytest.fixture
def world(fleet: Sandbox, restartable: ClusterName, unique: str, tmp_path: Path) -> Iterator[ConfiguredWorld]:
    world = ConfiguredWorld(fleet, tmp_path / "repo", unique, {"one": restartable})
    with kept_configuration(world.api("one")):
        yield world
    world.clean()


def test_apply_changes_the_configuration_and_kueue_runs_with_it(world: ConfiguredWorld) -> None:
    before, pid, restarts = world.configuration, world.pid, world.restarts
    world.set({"integrations": {"frameworks": {"add": ["statefulset"]}}, "clientConnection": {"qps": 150}})
    planned = world.plan()
    assert {path: (entry["old"], entry["new"], entry["cause"]) for path, entry in planned.fields(REF).items()} == {
        "clientConnection.qps": (300, 150, "spec"),
        "integrations.frameworks[1]": (None, "statefulset", "spec"),
    }
    world.converge()
    assert world.configuration == {
        **before,
        "clientConnection": {"qps": 150, "burst": 500},
        "integrations": {"frameworks": ["batch/job", "statefulset"]},
    }
    assert world.pid != pid and is_alive(world.sandbox.state.part("restartable/kueue"))
    assert world.restarts == restarts + 1
    assert set(world.annotations) == {APPLIED}


def test_apply_puts_back_what_somebody_changed(world: ConfiguredWorld) -> None:
    world.set({"clientConnection": {"qps": 120}})
    world.converge()
    world.write_configuration({**world.configuration, "clientConnection": {"qps": 5, "burst": 7}})
    restarts, planned = world.restarts, world.plan()
    assert (planned.code, planned.refusals) == (3, [("contested", REF)])
    assert world.apply().code == 3 and world.restarts == restarts
    forget_start(world.api("one"))
    assert {path: entry["cause"] for path, entry in world.plan().fields(REF).items()} == {
        "clientConnection.qps": "drift"
    }
    world.converge()
    assert world.configuration["clientConnection"] == {"qps": 120, "burst": 7}


def test_apply_rolls_back_what_kueue_does_not_start_with(world: ConfiguredWorld) -> None:
    before = world.config_map["data"]
    world.set(CONTRADICTION)
    applied = world.apply()
    assert applied.code == 4
    assert "Kueue does not start with it: CrashLoopBackOff: tls.cipherSuites" in applied.out
    assert "the previous one is back" in applied.out
    assert world.config_map["data"] == before
    assert is_alive(world.sandbox.state.part("restartable/kueue"))
    assert set(world.annotations) == {FAILED}
    restarts = world.restarts
    again = world.apply()
    assert again.code == 3 and "was rolled back: CrashLoopBackOff: tls.cipherSuites" in again.out
    assert world.restarts == restarts
    world.set({"clientConnection": {"qps": 130}})
    world.converge()
    assert set(world.annotations) == {APPLIED}


def test_apply_leaves_what_somebody_wrote_while_kueue_did_not_start(world: ConfiguredWorld) -> None:
    world.set(CONTRADICTION)
    applied = meanwhile(world, lambda: world.write_configuration(world.configuration, touched="by hand"))
    assert applied.code == 4 and "somebody changed it meanwhile, so it stays as it is now" in applied.out
    assert world.config_map["metadata"]["annotations"]["touched"] == "by hand" and PREVIOUS in world.annotations
    assert "the previous one is back" in world.apply().out
    world.write_configuration(world.configuration, touched=None)


def test_apply_finishes_what_another_kfleet_began(world: ConfiguredWorld) -> None:
    before = world.config_map["data"]
    world.set({"clientConnection": {"qps": 140}})
    world.write_configuration(
        {**world.configuration, "clientConnection": {"qps": 140, "burst": 500}}, **{PREVIOUS: str(before)}
    )
    pid = world.pid
    assert world.plan().changes[REF]["reason"] == "unfinished"
    world.converge()
    assert world.pid != pid
    assert set(world.annotations) == {APPLIED}


def test_apply_finishes_what_git_has_forgotten(world: ConfiguredWorld) -> None:
    before = world.config_map["data"]
    world.set({})
    world.write_configuration({**world.configuration, **CONTRADICTION}, **{PREVIOUS: before[CONFIG_KEY]})
    assert world.plan().changes[REF]["reason"] == "unfinished"
    applied = world.apply()
    assert applied.code == 4 and "the previous one is back" in applied.out
    assert world.config_map["data"] == before
    assert (world.plan().code, set(world.annotations)) == (0, {FAILED})


def test_look_misses_nothing_where_nothing_is_asked(world: ConfiguredWorld) -> None:
    world.set({})
    with account(world.api("one"), world.name, []) as nobody:
        assert observe_configurations(world.computed().spec, {ClusterName("one"): nobody}) == ConfigurationLook()
        world.set(POD)
        (gap,) = observe_configurations(world.computed().spec, {ClusterName("one"): nobody}).gaps
    assert "forbidden" in gap.why


def test_apply_bears_that_somebody_touches_the_configuration(world: ConfiguredWorld) -> None:
    world.set({"clientConnection": {"qps": 170}})
    assert meanwhile(world, lambda: world.annotate(touched="by hand")).code == 0
    assert set(world.annotations) == {APPLIED}
    world.annotate(touched=None)


def test_apply_says_that_somebody_wrote_another_configuration(world: ConfiguredWorld) -> None:
    world.set({"clientConnection": {"qps": 180}})
    other = {**world.configuration, "clientConnection": {"qps": 180, "burst": 501}}
    applied = meanwhile(world, lambda: world.write_configuration(other))
    assert applied.code == 4 and "Kueue runs with it, but somebody changed it meanwhile" in applied.out
    assert world.configuration == other and PREVIOUS in world.annotations
    world.converge()
    assert set(world.annotations) == {APPLIED}


def meanwhile(world: ConfiguredWorld, change: Callable[[], None]) -> Answer:
    """Apply, while somebody changes something as soon as the new text is there."""

    def wait_and_change() -> None:
        eventually(lambda: PREVIOUS in world.annotations)
        change()

    somebody = threading.Thread(target=wait_and_change)
    somebody.start()
    applied = world.apply()
    somebody.join()
    return applied


def test_run_rolls_out_and_tries_a_failure_once(world: ConfiguredWorld) -> None:
    world.set({"clientConnection": {"qps": 160}})
    controller = Controller(world.folder, ("--interval", "1"))
    try:
        eventually(lambda: set(world.annotations) == {APPLIED}, 60)
        assert world.configuration["clientConnection"]["qps"] == 160
        before = world.config_map["data"]
        world.set(CONTRADICTION)
        eventually(lambda: set(world.annotations) == {FAILED}, 60)
        eventually(lambda: controller.metric("kfleet_refusals") == 1, 60)
        restarts, cycles = world.restarts, controller.metric("kfleet_reconcile_seconds_count")
        eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= cycles + 3)
        assert (world.restarts, world.config_map["data"]) == (restarts, before)
    finally:
        controller.stop()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"integrations": {"framework": ["pod"]}}, "unknown field (did you mean frameworks?)"),
        ({"clientConnection": {"qps": "fast"}}, "must be a number, 'fast' is of another type"),
        ({"integrations": {"frameworks": {"add": ["pods"]}}}, "'pods' is not one of"),
        ({"apiVersion": "config.kueue.x-k8s.io/v1"}, "is not one of config.kueue.x-k8s.io/v1beta1"),
    ],
)
def test_validate_refuses_a_broken_configuration_at_its_line(
    world: ConfiguredWorld, config: dict[str, object], problem: str
) -> None:
    version = world.config_map["metadata"]["resourceVersion"]
    world.set(config)
    said = world.run("validate")
    assert said.code == 1 and problem in said.out + said.err and "fleet/fleet.yaml:" in said.out + said.err
    assert world.apply().code == 1
    assert world.config_map["metadata"]["resourceVersion"] == version


def test_plan_refuses_what_the_release_of_the_cluster_does_not_know(
    fleet: Sandbox, unique: str, tmp_path: Path
) -> None:
    world = ConfiguredWorld(fleet, tmp_path / "repo", unique, {"one": "worker2"}, kueue={"version": "0.19"})
    version = world.config_map["metadata"]["resourceVersion"]
    world.show_image("kueue:v0.16.2")
    world.set({"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}})
    assert world.run("validate").code == 0
    applied = world.apply()
    assert applied.code == 3
    assert "Kueue 0.16.2: resources.quotaCheckStrategy: this Kueue does not know the field" in applied.out
    assert world.config_map["metadata"]["resourceVersion"] == version
    world.show_image("kueue")
    world.clean()


def test_apply_changes_a_configuration_of_the_older_api_version(fleet: Sandbox, unique: str, tmp_path: Path) -> None:
    world = ConfiguredWorld(fleet, tmp_path / "repo", unique, {"one": "worker2"})
    with kept_configuration(world.api("one")):
        older = {**world.configuration, "apiVersion": "config.kueue.x-k8s.io/v1beta1"}
        world.write_configuration(older)
        pid = world.pid
        world.set({"waitForPodsReady": {"enable": True, "timeout": "9m"}})
        world.converge()
        assert world.configuration == {**older, "waitForPodsReady": {"enable": True, "timeout": "9m"}}
        assert world.pid != pid and is_alive(world.sandbox.state.part("worker2/kueue"))
    world.clean()


def test_suspended_cluster_keeps_its_configuration(world: ConfiguredWorld) -> None:
    version = world.config_map["metadata"]["resourceVersion"]
    world.set(POD, suspend=True)
    assert world.plan().actions == {REF: "hold"}
    assert world.apply().code == 0
    assert world.config_map["metadata"]["resourceVersion"] == version


def test_plan_shows_the_configuration_among_the_chosen_objects(world: ConfiguredWorld) -> None:
    world.set(POD)
    assert world.plan("--only", "*/ConfigMap/*").actions == {REF: "update"}
    assert world.plan("--only", "*/ClusterQueue/*").actions == {}
    status = world.run("status")
    assert status.code == 4 and "1 to update" in status.out


def test_plan_says_that_there_is_no_configuration(world: ConfiguredWorld) -> None:
    world.kueue = {"namespace": "default"}
    world.set(POD)
    planned = world.plan()
    assert planned.code == 4
    (gap,) = planned.record["gaps"]
    assert gap["what"] == "the Configuration of Kueue"
    assert gap["why"].startswith("no ConfigMap in default has the key controller_manager_config.yaml")


def test_plan_says_that_nothing_could_be_restarted(world: ConfiguredWorld) -> None:
    api, namespace = world.api("one"), f"{world.name}-kueue"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    api.create({**_copied(world.config_map), "metadata": {"name": "helm-kueue-config", "namespace": namespace}})
    world.kueue = {"namespace": namespace}
    world.set(POD)
    (gap,) = world.plan().record["gaps"]
    assert gap["why"] == (
        f"no Deployment in {namespace} mounts the ConfigMap helm-kueue-config, so that nothing could be restarted"
    )


def _copied(config_map: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": config_map["data"]}


def test_roll_out_leaves_what_somebody_wrote_since_the_plan(world: ConfiguredWorld) -> None:
    before, restarts = world.config_map, world.restarts
    ref = Ref(ClusterName("one"), "", "ConfigMap", SYSTEM, "kueue-manager-config")
    rollout = Rollout(SYSTEM, ref.name, "kueue-controller-manager", "kind: Configuration", "", "1", "patch")
    change = Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout)
    outcome = roll_out(world.api("one"), change, rollout, Patience())
    assert not outcome.is_done and "409" in outcome.problem
    assert (world.config_map, world.restarts) == (before, restarts)


def test_roll_out_writes_nothing_where_kueue_may_not_be_restarted(world: ConfiguredWorld) -> None:
    before, restarts = world.config_map, world.restarts
    ref = Ref(ClusterName("one"), "", "ConfigMap", SYSTEM, "kueue-manager-config")
    version = before["metadata"]["resourceVersion"]
    rollout = Rollout(SYSTEM, ref.name, "kueue-controller-manager", "kind: Configuration", "", version, "patch")
    change = Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}]
    with account(world.api("one"), world.name, rules) as limited:
        eventually(lambda: limited.get(CONFIG_PATH))
        outcome = roll_out(limited, change, rollout, Patience())
    assert not outcome.is_done and "cannot patch" in outcome.problem and "deployments" in outcome.problem
    assert (world.config_map, world.restarts) == (before, restarts)


def test_roll_out_writes_nothing_where_it_may_not(world: ConfiguredWorld) -> None:
    before = world.config_map
    rollout = Rollout(SYSTEM, "kueue-manager-config", "kueue-controller-manager", "x", "", "1", "patch")
    ref = Ref(ClusterName("one"), "", "ConfigMap", SYSTEM, rollout.name)
    change = Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout)
    outcome = roll_out(world.api("one"), change, rollout, Patience(forbidden=lambda: "the lease is lost"))
    assert outcome.problem == "the lease is lost"
    assert world.config_map == before

"""Kueue's Configuration on a real cluster: written, restarted, watched, rolled back."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.configuration import roll_out
from reconciler.apply.retry import RetryPolicy
from reconciler.kueue_config.model import APPLIED, FAILED, PREVIOUS, Rollout
from reconciler.kueue_config.observe import ObservedConfigurations, observe_configurations
from reconciler.objects import ClusterName, Ref
from reconciler.plan.model import Action, Change, Reason
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.kueue import CONFIG_KEY
from reconciler.sandbox.processes import is_alive
from tests.builders import namespace_object
from tests.cluster.accounts import account
from tests.cluster.controller.controllers import Controller
from tests.cluster.kueue_config.configured_live_fleet import (
    CONFIG_PATH,
    REF,
    ConfiguredLiveFleet,
    forget_start,
    kept_configuration,
)
from tests.cluster.live_fleet import SYSTEM, Answer
from tests.support import eventually

# Kueue checks this when it starts, and kfleet does not know better.
CONTRADICTION = {"tls": {"minVersion": "VersionTLS13", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]}}
POD = {"integrations": {"frameworks": {"add": ["pod"]}}}


@pytest.fixture
def live_fleet(fleet: Sandbox, restartable: ClusterName, unique: str, tmp_path: Path) -> Iterator[ConfiguredLiveFleet]:
    live_fleet = ConfiguredLiveFleet(fleet, tmp_path / "repo", unique, {"one": restartable})
    with kept_configuration(live_fleet.api("one")):
        yield live_fleet
    live_fleet.clean()


def test_apply_changes_the_configuration_and_kueue_runs_with_it(live_fleet: ConfiguredLiveFleet) -> None:
    before, pid, restarts = live_fleet.configuration, live_fleet.pid, live_fleet.restarts
    live_fleet.set({"integrations": {"frameworks": {"add": ["statefulset"]}}, "clientConnection": {"qps": 150}})
    planned = live_fleet.plan()
    assert {path: (entry["old"], entry["new"], entry["cause"]) for path, entry in planned.fields(REF).items()} == {
        "clientConnection.qps": (300, 150, "spec"),
        "integrations.frameworks[1]": (None, "statefulset", "spec"),
    }
    live_fleet.converge()
    assert live_fleet.configuration == {
        **before,
        "clientConnection": {"qps": 150, "burst": 500},
        "integrations": {"frameworks": ["batch/job", "statefulset"]},
    }
    assert live_fleet.pid != pid and is_alive(live_fleet.sandbox.state.part("restartable/kueue"))
    assert live_fleet.restarts == restarts + 1
    assert set(live_fleet.annotations) == {APPLIED}


def test_apply_puts_back_what_a_user_changed(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set({"clientConnection": {"qps": 120}})
    live_fleet.converge()
    live_fleet.write_configuration({**live_fleet.configuration, "clientConnection": {"qps": 5, "burst": 7}})
    restarts, planned = live_fleet.restarts, live_fleet.plan()
    assert (planned.code, planned.refusals) == (3, [("contested", REF)])
    assert live_fleet.apply().code == 3 and live_fleet.restarts == restarts
    forget_start(live_fleet.api("one"))
    assert {path: entry["cause"] for path, entry in live_fleet.plan().fields(REF).items()} == {
        "clientConnection.qps": "drift"
    }
    live_fleet.converge()
    assert live_fleet.configuration["clientConnection"] == {"qps": 120, "burst": 7}


def test_apply_rolls_back_what_kueue_does_not_start_with(live_fleet: ConfiguredLiveFleet) -> None:
    before = live_fleet.config_map["data"]
    live_fleet.set(CONTRADICTION)
    applied = live_fleet.apply()
    assert applied.code == 4
    assert "Kueue does not start with it: CrashLoopBackOff: tls.cipherSuites" in applied.out
    assert "the previous one is restored" in applied.out
    assert live_fleet.config_map["data"] == before
    assert is_alive(live_fleet.sandbox.state.part("restartable/kueue"))
    assert set(live_fleet.annotations) == {FAILED}
    restarts = live_fleet.restarts
    again = live_fleet.apply()
    assert again.code == 3 and "was rolled back: CrashLoopBackOff: tls.cipherSuites" in again.out
    assert live_fleet.restarts == restarts
    live_fleet.set({"clientConnection": {"qps": 130}})
    live_fleet.converge()
    assert set(live_fleet.annotations) == {APPLIED}


def test_apply_leaves_what_a_user_wrote_while_kueue_did_not_start(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set(CONTRADICTION)
    applied = meanwhile(live_fleet, lambda: live_fleet.write_configuration(live_fleet.configuration, touched="by hand"))
    assert (
        applied.code == 4
        and "another client changed the ConfigMap meanwhile, so kfleet leaves it as it is" in applied.out
    )
    assert (
        live_fleet.config_map["metadata"]["annotations"]["touched"] == "by hand" and PREVIOUS in live_fleet.annotations
    )
    assert "the previous one is restored" in live_fleet.apply().out
    live_fleet.write_configuration(live_fleet.configuration, touched=None)


def test_apply_finishes_what_another_kfleet_began(live_fleet: ConfiguredLiveFleet) -> None:
    before = live_fleet.config_map["data"]
    live_fleet.set({"clientConnection": {"qps": 140}})
    live_fleet.write_configuration(
        {**live_fleet.configuration, "clientConnection": {"qps": 140, "burst": 500}}, **{PREVIOUS: str(before)}
    )
    pid = live_fleet.pid
    assert live_fleet.plan().changes[REF]["reason"] == "unfinished"
    live_fleet.converge()
    assert live_fleet.pid != pid
    assert set(live_fleet.annotations) == {APPLIED}


def test_apply_finishes_what_git_has_forgotten(live_fleet: ConfiguredLiveFleet) -> None:
    before = live_fleet.config_map["data"]
    live_fleet.set({})
    live_fleet.write_configuration({**live_fleet.configuration, **CONTRADICTION}, **{PREVIOUS: before[CONFIG_KEY]})
    assert live_fleet.plan().changes[REF]["reason"] == "unfinished"
    applied = live_fleet.apply()
    assert applied.code == 4 and "the previous one is restored" in applied.out
    assert live_fleet.config_map["data"] == before
    assert (live_fleet.plan().code, set(live_fleet.annotations)) == (0, {FAILED})


def test_look_misses_nothing_where_nothing_is_asked(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set({})
    with account(live_fleet.api("one"), live_fleet.name, []) as nobody:
        assert (
            observe_configurations(live_fleet.computed().spec, {ClusterName("one"): nobody}) == ObservedConfigurations()
        )
        live_fleet.set(POD)
        (gap,) = observe_configurations(live_fleet.computed().spec, {ClusterName("one"): nobody}).gaps
    assert "forbidden" in gap.why


def test_apply_bears_that_a_user_touches_the_configuration(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set({"clientConnection": {"qps": 170}})
    assert meanwhile(live_fleet, lambda: live_fleet.annotate(touched="by hand")).code == 0
    assert set(live_fleet.annotations) == {APPLIED}
    live_fleet.annotate(touched=None)


def test_apply_says_that_a_user_wrote_another_configuration(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set({"clientConnection": {"qps": 180}})
    other = {**live_fleet.configuration, "clientConnection": {"qps": 180, "burst": 501}}
    applied = meanwhile(live_fleet, lambda: live_fleet.write_configuration(other))
    assert applied.code == 4 and "Kueue runs with it, but another client changed the ConfigMap meanwhile" in applied.out
    assert live_fleet.configuration == other and PREVIOUS in live_fleet.annotations
    live_fleet.converge()
    assert set(live_fleet.annotations) == {APPLIED}


def meanwhile(live_fleet: ConfiguredLiveFleet, change: Callable[[], None]) -> Answer:
    """Apply, while somebody changes something as soon as the new text is there."""

    def wait_and_change() -> None:
        eventually(lambda: PREVIOUS in live_fleet.annotations)
        change()

    somebody = threading.Thread(target=wait_and_change)
    somebody.start()
    applied = live_fleet.apply()
    somebody.join()
    return applied


def test_run_rolls_out_and_tries_a_failure_once(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set({"clientConnection": {"qps": 160}})
    controller = Controller(live_fleet.folder, ("--interval", "1"))
    try:
        eventually(lambda: set(live_fleet.annotations) == {APPLIED}, 60)
        assert live_fleet.configuration["clientConnection"]["qps"] == 160
        before = live_fleet.config_map["data"]
        live_fleet.set(CONTRADICTION)
        eventually(lambda: set(live_fleet.annotations) == {FAILED}, 60)
        eventually(lambda: controller.metric("kfleet_refusals") == 1, 60)
        restarts, cycles = live_fleet.restarts, controller.metric("kfleet_reconcile_seconds_count")
        eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= cycles + 3)
        assert (live_fleet.restarts, live_fleet.config_map["data"]) == (restarts, before)
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
    live_fleet: ConfiguredLiveFleet, config: dict[str, object], problem: str
) -> None:
    version = live_fleet.config_map["metadata"]["resourceVersion"]
    live_fleet.set(config)
    said = live_fleet.run("validate")
    assert said.code == 1 and problem in said.out + said.err and "fleet/fleet.yaml:" in said.out + said.err
    assert live_fleet.apply().code == 1
    assert live_fleet.config_map["metadata"]["resourceVersion"] == version


def test_plan_refuses_what_the_release_of_the_cluster_does_not_know(
    fleet: Sandbox, unique: str, tmp_path: Path
) -> None:
    live_fleet = ConfiguredLiveFleet(fleet, tmp_path / "repo", unique, {"one": "worker2"}, kueue={"version": "0.19"})
    version = live_fleet.config_map["metadata"]["resourceVersion"]
    live_fleet.show_image("kueue:v0.16.2")
    live_fleet.set({"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}})
    assert live_fleet.run("validate").code == 0
    applied = live_fleet.apply()
    assert applied.code == 3
    assert "Kueue 0.16.2: resources.quotaCheckStrategy: this Kueue does not have the field" in applied.out
    assert live_fleet.config_map["metadata"]["resourceVersion"] == version
    live_fleet.show_image("kueue")
    live_fleet.clean()


def test_apply_changes_a_configuration_of_the_older_api_version(fleet: Sandbox, unique: str, tmp_path: Path) -> None:
    live_fleet = ConfiguredLiveFleet(fleet, tmp_path / "repo", unique, {"one": "worker2"})
    with kept_configuration(live_fleet.api("one")):
        older = {**live_fleet.configuration, "apiVersion": "config.kueue.x-k8s.io/v1beta1"}
        live_fleet.write_configuration(older)
        pid = live_fleet.pid
        live_fleet.set({"waitForPodsReady": {"enable": True, "timeout": "9m"}})
        live_fleet.converge()
        assert live_fleet.configuration == {**older, "waitForPodsReady": {"enable": True, "timeout": "9m"}}
        assert live_fleet.pid != pid and is_alive(live_fleet.sandbox.state.part("worker2/kueue"))
    live_fleet.clean()


def test_suspended_cluster_keeps_its_configuration(live_fleet: ConfiguredLiveFleet) -> None:
    version = live_fleet.config_map["metadata"]["resourceVersion"]
    live_fleet.set(POD, suspend=True)
    assert live_fleet.plan().actions == {REF: "hold"}
    assert live_fleet.apply().code == 0
    assert live_fleet.config_map["metadata"]["resourceVersion"] == version


def test_plan_shows_the_configuration_among_the_chosen_objects(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.set(POD)
    assert live_fleet.plan("--only", "*/ConfigMap/*").actions == {REF: "update"}
    assert live_fleet.plan("--only", "*/ClusterQueue/*").actions == {}
    status = live_fleet.run("status")
    assert status.code == 4 and "1 to update" in status.out


def test_plan_says_that_there_is_no_configuration(live_fleet: ConfiguredLiveFleet) -> None:
    live_fleet.kueue = {"namespace": "default"}
    live_fleet.set(POD)
    planned = live_fleet.plan()
    assert planned.code == 4
    (gap,) = planned.record["gaps"]
    assert gap["what"] == "the Configuration of Kueue"
    assert gap["why"].startswith("no ConfigMap in default has the key controller_manager_config.yaml")


def test_plan_says_that_nothing_could_be_restarted(live_fleet: ConfiguredLiveFleet) -> None:
    api, namespace = live_fleet.api("one"), f"{live_fleet.name}-kueue"
    api.create(namespace_object(namespace))
    api.create({**_copied(live_fleet.config_map), "metadata": {"name": "helm-kueue-config", "namespace": namespace}})
    live_fleet.kueue = {"namespace": namespace}
    live_fleet.set(POD)
    (gap,) = live_fleet.plan().record["gaps"]
    assert gap["why"] == (
        f"no Deployment in {namespace} mounts the ConfigMap helm-kueue-config, so kfleet cannot restart Kueue"
    )


def _copied(config_map: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": config_map["data"]}


def test_roll_out_leaves_what_a_user_wrote_since_the_plan(live_fleet: ConfiguredLiveFleet) -> None:
    before, restarts = live_fleet.config_map, live_fleet.restarts
    ref = Ref(ClusterName("one"), "", "ConfigMap", SYSTEM, "kueue-manager-config")
    rollout = Rollout(SYSTEM, ref.name, "kueue-controller-manager", "kind: Configuration", "", "1", "patch")
    change = Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout)
    outcome = roll_out(live_fleet.api("one"), change, rollout, RetryPolicy())
    assert not outcome.is_done and "409" in outcome.problem
    assert (live_fleet.config_map, live_fleet.restarts) == (before, restarts)


def test_roll_out_writes_nothing_where_kueue_may_not_be_restarted(live_fleet: ConfiguredLiveFleet) -> None:
    before, restarts = live_fleet.config_map, live_fleet.restarts
    ref = Ref(ClusterName("one"), "", "ConfigMap", SYSTEM, "kueue-manager-config")
    version = before["metadata"]["resourceVersion"]
    rollout = Rollout(SYSTEM, ref.name, "kueue-controller-manager", "kind: Configuration", "", version, "patch")
    change = Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}]
    with account(live_fleet.api("one"), live_fleet.name, rules) as limited:
        eventually(lambda: limited.get(CONFIG_PATH))
        outcome = roll_out(limited, change, rollout, RetryPolicy())
    assert not outcome.is_done and "cannot patch" in outcome.problem and "deployments" in outcome.problem
    assert (live_fleet.config_map, live_fleet.restarts) == (before, restarts)


def test_roll_out_writes_nothing_where_it_may_not(live_fleet: ConfiguredLiveFleet) -> None:
    before = live_fleet.config_map
    rollout = Rollout(SYSTEM, "kueue-manager-config", "kueue-controller-manager", "x", "", "1", "patch")
    ref = Ref(ClusterName("one"), "", "ConfigMap", SYSTEM, rollout.name)
    change = Change(ref, Action.UPDATE, Reason.CHANGED, -1, rollout=rollout)
    outcome = roll_out(live_fleet.api("one"), change, rollout, RetryPolicy(forbidden=lambda: "the lease is lost"))
    assert outcome.problem == "the lease is lost"
    assert live_fleet.config_map == before

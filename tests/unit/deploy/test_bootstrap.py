"""`kfleet bootstrap`: an account on a worker, and the manager's login there."""

from reconciler.plan.rbac import account_objects, kubestellar_objects
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.support import Kfleet


def test_bootstrap_prints_a_role_for_some_frameworks(kfleet_in_process: Kfleet) -> None:
    answer = kfleet_in_process("bootstrap", "worker", "east", "--framework", "batch/job", "--kueue-namespace", "queues")
    objects = [*fast_yaml.safe_load_all(answer.stdout)]
    rules = next(entry for entry in objects if entry["kind"] == "ClusterRole")["rules"]
    jobs = [name for rule in rules for name in rule["resources"] if name.endswith("jobs")]
    assert jobs == ["jobs"]
    assert next(entry for entry in objects if entry["kind"] == "Role")["metadata"]["namespace"] == "queues"


def test_bootstrap_manager_prints_what_deploy_holds(kfleet_in_process: Kfleet) -> None:
    answer = kfleet_in_process("bootstrap", "manager")
    assert [*fast_yaml.safe_load_all(answer.stdout)] == [*account_objects(Role.MANAGER)]
    answer = kfleet_in_process("bootstrap", "manager", "--kubestellar")
    objects = [*account_objects(Role.MANAGER), *kubestellar_objects()]
    assert [*fast_yaml.safe_load_all(answer.stdout)] == objects


def test_bootstrap_refuses_a_name_that_no_object_can_have(kfleet_in_process: Kfleet) -> None:
    answer = kfleet_in_process("bootstrap", "worker", "East_1")
    assert answer.returncode == 1 and "'East_1' does not consist of" in answer.stderr

"""`kfleet doctor` on real clusters: with the rights of a reader, and past a dead context."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import native
from tests.cluster.accounts import account
from tests.cluster.importer.first_day import FirstDay

READER = [
    {"apiGroups": ["kueue.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
]


@pytest.fixture
def day(clusters: Sandbox, tmp_path: Path) -> FirstDay:
    found = FirstDay(clusters, tmp_path)
    found.write_kubeconfig()
    return found


def change(day: FirstDay, context: str, part: str, fields: Mapping[str, Any]) -> None:
    """Give a context another user or cluster in the kubeconfig."""
    content = fast_yaml.safe_load(day.kubeconfig.read_text())
    own = next(entry["context"] for entry in content["contexts"] if entry["name"] == context)
    known = next(entry for entry in content[f"{part}s"] if entry["name"] == own[part])
    name = f"{context}-{part}"
    content[f"{part}s"].append({"name": name, part: {**known[part], **fields}})
    own[part] = name
    day.kubeconfig.write_text(fast_yaml.safe_dump(content))


def diagnosed(day: FirstDay, *options: str) -> tuple[int, dict[str, Any]]:
    answer = day.kfleet("doctor", "-o", "json", *options)
    assert "Traceback" not in answer.stderr, answer.stderr
    record: dict[str, Any] = json.loads(answer.stdout)
    return answer.returncode, record


def test_doctor_with_the_rights_of_a_reader_says_what_it_could_not_see(day: FirstDay) -> None:
    with account(day.api("east"), "a-reader", READER) as reader:
        change(day, "east", "user", {"token": reader.access.token})
        code, record = diagnosed(day, "--context", "east")
    gaps = [str(gap) for gap in record["gaps"]]
    assert code == 4 and any("Node" in gap for gap in gaps), json.dumps(record, indent=1)
    assert not [one for one in record["diagnostics"] if one["code"].startswith("flavor-")]


def test_doctor_says_that_it_may_not_read_the_logins_of_workers(day: FirstDay) -> None:
    link = native("MultiKueueCluster", "far", {"clusterSource": {"kubeConfig": {"location": "far-login"}}})
    day.apply("hub", link)
    try:
        with account(day.api("hub"), "a-reader", READER) as reader:
            change(day, "hub", "user", {"token": reader.access.token})
            _, record = diagnosed(day, "--context", "hub")
    finally:
        day.api("hub").delete(day.api("hub").path_of(link))
    (gap,) = [gap for gap in record["gaps"] if gap["what"].startswith("the logins of ")]
    assert gap["cluster"] == "hub" and "far" in gap["what"] and "secrets" in gap["why"], gap
    assert not [one for one in record["diagnostics"] if one["code"] == "token"]


def test_doctor_is_not_delayed_by_a_context_that_leads_nowhere(day: FirstDay) -> None:
    change(day, "west", "cluster", {"server": "https://127.0.0.1:9"})
    code, record = diagnosed(day)
    assert code in {2, 4} and any("west" in str(gap) for gap in record["gaps"]), json.dumps(record, indent=1)
    assert {"hub", "east"} <= {str(cluster["name"]) for cluster in record["clusters"]}

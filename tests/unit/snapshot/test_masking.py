"""Nothing secret gets into a snapshot, and what decides stays in it."""

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from datetime import timedelta
from typing import Any

import pytest
import yaml

from reconciler.multikueue.model import read_credential, with_token
from reconciler.objects import ApiEndpoint, ClusterName, Manifest, TokenRequestSpec
from reconciler.snapshot.masking import MASKED, MASKED_DATA, masked_body, masked_object, masked_token
from reconciler.state.values import LAST_APPLIED
from tests.builders import job

PLANTED = "hunter2"
CLAIMS = {"sub": "system:serviceaccount:kueue-system:kfleet", "iat": 1_700_000_000, "exp": 1_800_000_000}
SECRETS = "/api/v1/namespaces/a/secrets"


def encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


TOKEN = f"{encoded({'alg': 'RS256'})}.{encoded({**CLAIMS, 'jti': PLANTED})}.{PLANTED}-signature"
OPTIONS = TokenRequestSpec(
    ClusterName("west"), "kueue-system", "kfleet", timedelta(hours=1), ApiEndpoint("https://west:6443", "authority")
)


def secret(**more: Any) -> Manifest:
    metadata = {
        "name": "login",
        "annotations": {LAST_APPLIED: PLANTED, "note": PLANTED, "kfleet.dev/fields": "kept"},
        "managedFields": [
            {"manager": "x", "fieldsV1": {"f:data": {"f:password": {}}, "f:metadata": {f'v:"{PLANTED}"': {}}}}
        ],
    }
    data = {"password": b64encode(PLANTED.encode()).decode(), "kubeconfig": "cGFzc3dvcmQ="}
    return {"metadata": metadata, "type": "Opaque", "data": data, "stringData": {"more": PLANTED}, **more}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{SECRETS}/login", {"kind": "Secret", **secret()}),
        (f"{SECRETS}/login", secret()),
        (SECRETS, {"kind": "SecretList", "items": [secret()]}),
        ("/api/v1/secrets?labelSelector=a%3Db", {"kind": "List", "items": [secret()]}),
    ],
)
def test_secret_keeps_the_names_of_its_keys_only(path: str, body: Manifest) -> None:
    shown = masked_body(path, body)
    text = json.dumps(shown)
    assert PLANTED not in text and b64encode(PLANTED.encode()).decode() not in text
    assert isinstance(shown, dict)
    found = shown["items"][0] if "items" in shown else shown
    assert found["data"] == {"password": MASKED_DATA, "kubeconfig": MASKED_DATA}
    assert found["metadata"]["annotations"] == {"note": MASKED, "kfleet.dev/fields": "kept"}
    assert found["metadata"]["managedFields"] == [
        {"manager": "x", "fieldsV1": {"f:data": {"f:password": {}}, "f:metadata": {}}}
    ]
    assert found["type"] == "Opaque"


def test_masked_token_has_the_same_claims_and_is_masked_once() -> None:
    masked = masked_token(TOKEN)
    head, payload, signature = masked.split(".")
    assert (head, signature) == (MASKED, MASKED)
    assert json.loads(b64decode(payload + "==")) == CLAIMS
    assert masked_token(masked) == masked
    assert [masked_token(text) for text in ("", "opaque", "a.b.c", "a.e30.c.d")] == [MASKED] * 4


def test_credential_of_a_worker_is_read_as_before() -> None:
    written = with_token({"metadata": {"name": "west"}}, OPTIONS, TOKEN)
    masked = masked_object("Secret", written)
    before, after = read_credential(written), read_credential(masked)
    assert before.token and after.token and before.endpoint == after.endpoint
    assert (after.token.subject, after.token.issued, after.token.expires) == (
        before.token.subject,
        before.token.issued,
        before.token.expires,
    )
    assert after.token.text == masked_token(TOKEN)
    assert with_token({"metadata": {"name": "west"}}, OPTIONS, after.token.text)["data"] == masked["data"]


def test_kubeconfig_loses_every_other_way_to_log_in() -> None:
    content = {
        "clusters": [{"name": "a", "cluster": {"server": f"https://u:{PLANTED}@host/path", "proxy-url": PLANTED}}],
        "users": [
            {"name": "a", "user": {"password": PLANTED, "client-key-data": PLANTED, "exec": {"args": [PLANTED]}}}
        ],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
        "extensions": PLANTED,
    }
    data = b64encode(yaml.safe_dump(content).encode()).decode()
    masked = masked_object("Secret", {"metadata": {}, "data": {"kubeconfig": data}})
    text = b64decode(masked["data"]["kubeconfig"]).decode()
    assert PLANTED not in text and "https://host/path" in text


POD = {
    "containers": [
        {
            "name": "main",
            "image": PLANTED,
            "command": [PLANTED],
            "args": [PLANTED],
            "env": [{"name": "PASSWORD", "value": PLANTED}],
            "volumeMounts": [{"name": PLANTED}],
            "resources": {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": "1"}},
        }
    ],
    "volumes": [{"name": "v", "secret": {"secretName": PLANTED}}],
    "nodeSelector": {"site": "cnaf"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "priorityClassName": "high",
    "serviceAccountName": PLANTED,
}
KEPT_POD = {
    "containers": [{"name": "main", "resources": POD["containers"][0]["resources"]}],  # type: ignore[index]
    "nodeSelector": {"site": "cnaf"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "priorityClassName": "high",
}


def test_workload_keeps_what_decides_about_its_admission() -> None:
    workload = {
        "metadata": {
            "name": "w",
            "uid": "1",
            "labels": {"kueue.x-k8s.io/queue-name": "main"},
            "ownerReferences": [{"kind": "Job", "name": "j"}],
            "annotations": {"note": PLANTED, "kueue.x-k8s.io/elastic-job": "true"},
            "managedFields": [{"manager": PLANTED}],
        },
        "spec": {
            "queueName": "main",
            "priority": 5,
            "podSets": [{"name": "main", "count": 3, "template": {"metadata": {}, "spec": POD}}],
        },
        "status": {"admission": {"clusterQueue": "q"}},
    }
    masked = masked_object("Workload", workload)
    assert masked == {
        "metadata": {
            "name": "w",
            "uid": "1",
            "labels": {"kueue.x-k8s.io/queue-name": "main"},
            "ownerReferences": [{"kind": "Job", "name": "j"}],
            "annotations": {"kueue.x-k8s.io/elastic-job": "true"},
        },
        "spec": {
            "queueName": "main",
            "priority": 5,
            "podSets": [{"name": "main", "count": 3, "template": {"metadata": {}, "spec": KEPT_POD}}],
        },
        "status": {"admission": {"clusterQueue": "q"}},
    }


def test_job_keeps_numbers_and_structure_and_no_unknown_text() -> None:
    submitted = {
        "metadata": {"name": "j"},
        "spec": {"entrypoint": PLANTED, "runtimeEnv": {"a": [PLANTED]}, "parallelism": 2, "suspend": True},
    }
    assert masked_object("RayJob", submitted)["spec"] == {"runtimeEnv": {"a": []}, "parallelism": 2, "suspend": True}
    assert masked_object("Job", job("j"))["spec"]["template"]["spec"]["containers"][0].keys() <= {"name", "resources"}


def test_job_inside_an_object_of_another_system_is_masked_too() -> None:
    work = {
        "metadata": {"name": "w"},
        "spec": {"workload": {"manifests": [{"kind": "Job", "spec": {"template": {"spec": POD}}}]}},
    }
    masked = masked_object("ManifestWork", work)
    assert masked["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"] == KEPT_POD
    assert PLANTED not in json.dumps(masked)


def test_deployment_of_kueue_keeps_its_release_and_its_config_map() -> None:
    volumes = [
        {"name": "c", "configMap": {"name": "kueue-manager-config"}},
        {"name": "s", "secret": {"secretName": "x"}},
    ]
    pod = {**POD, "volumes": volumes}
    deployment = {"metadata": {"name": "kueue"}, "spec": {"replicas": 1, "template": {"spec": pod}}}
    shown = masked_object("Deployment", deployment)["spec"]["template"]["spec"]
    assert shown["volumes"] == [volumes[0], {"name": "s"}]
    assert set(shown["containers"][0]) == {"name", "image", "args", "resources"}


def test_other_objects_stay_as_they_are() -> None:
    queue = {"kind": "ClusterQueue", "metadata": {"name": "q", "annotations": {"note": "x"}}, "spec": {"a": ["text"]}}
    assert masked_body("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q", queue) == queue
    node = {"metadata": {"name": "n"}, "status": {"images": [{"names": ["x"]}], "capacity": {"cpu": "1"}}}
    assert masked_object("Node", node)["status"] == {"capacity": {"cpu": "1"}}

"""Objects that tests of the KubeStellar sandbox write by hand."""

from typing import Any

CHECK = "kubestellar.io/ks-kueue"
KUEUE = "kueue.x-k8s.io/v1beta2"


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def queue(name: str) -> list[dict[str, Any]]:
    """A queue of 4 processors whose jobs wait for a check, in a namespace of the same name."""
    quota = {"name": name, "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    return [
        _kueue("ResourceFlavor", name, {}),
        _kueue("AdmissionCheck", name, {"controllerName": CHECK}),
        _kueue(
            "ClusterQueue",
            name,
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "admissionChecksStrategy": {"admissionChecks": [{"name": name}]},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            },
        ),
        {**_kueue("LocalQueue", name, {"clusterQueue": name}), "metadata": {"name": name, "namespace": name}},
    ]


def _kueue(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}


def job(name: str, queue_name: str = "") -> dict[str, Any]:
    """Two pods of one processor each; with a queue's name it is created suspended, in the queue's namespace."""
    labels = {"kueue.x-k8s.io/queue-name": queue_name} if queue_name else {}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": queue_name or name, "labels": labels},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "suspend": bool(queue_name),
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def binding_policy(label: str, worker: str) -> dict[str, Any]:
    """What carries the label with the worker's name goes to that worker, and its status comes back (0.22 shape)."""
    return {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "BindingPolicy",
        "metadata": {"name": f"{label.partition('/')[2]}-{worker}"},
        "spec": {
            "clusterSelectors": [{"matchLabels": {"name": worker, "location-group": "edge"}}],
            "downsync": [{"objectSelectors": [{"matchLabels": {label: worker}}]}],
            "wantSingletonReportedState": True,
        },
    }

"""A fleet of one cluster that sets a part of its Kueue's Configuration."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue_config.model import APPLIED, FAILED, PREVIOUS
from reconciler.sandbox.kueue import CONFIG_KEY, CONFIG_MAP
from tests import fast_yaml
from tests.builders import Document
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.support import eventually

CONFIG_PATH = f"/api/v1/namespaces/{SYSTEM}/configmaps/{CONFIG_MAP}"
DEPLOYMENT_PATH = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/kueue-controller-manager"
REF = f"one/ConfigMap/{SYSTEM}/{CONFIG_MAP}"


@contextmanager
def kept_configuration(api: ApiServer) -> Iterator[None]:
    """Afterwards the text is as it was before, and Kueue runs with it."""
    data = api.get(CONFIG_PATH)["data"]
    yield
    api.patch(CONFIG_PATH, {"metadata": {"annotations": dict.fromkeys((APPLIED, PREVIOUS, FAILED))}, "data": data})
    forget_start(api)


def forget_start(api: ApiServer) -> None:
    """As if kfleet had not restarted Kueue: pods without its mark take the place of those that have it."""
    api.patch(DEPLOYMENT_PATH, {"spec": {"template": {"metadata": {"annotations": {APPLIED: None}}}}})
    wait_for_kueue(api)


def wait_for_kueue(api: ApiServer) -> None:
    """Until the newest pods are ready: once restarted, Kueue starts again with each of them."""
    eventually(lambda: _is_ready(api.get(DEPLOYMENT_PATH)), 120)


def _is_ready(deployment: dict[str, Any]) -> bool:
    status = deployment["status"]
    counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [1, 1, 1]


@dataclass
class ConfiguredLiveFleet(LiveFleet):
    """`kueue` is spec.kueue of the cluster, `rest` more of its spec."""

    kueue: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def cluster_documents(self) -> Iterator[Document]:
        for document in super().cluster_documents():
            spec = {**document["spec"], "kueue": self.kueue, **self.rest}
            yield {**document, "spec": spec}

    def set(self, config: dict[str, Any], **rest: Any) -> None:
        """Another Configuration in git."""
        self.kueue, self.rest = {**self.kueue, "config": config}, rest
        self.commit()

    @property
    def config_map(self) -> dict[str, Any]:
        return self.api("one").get(CONFIG_PATH)

    @property
    def configuration(self) -> dict[str, Any]:
        content: dict[str, Any] = fast_yaml.safe_load(self.config_map["data"][CONFIG_KEY])
        return content

    def write_configuration(self, content: dict[str, Any], **annotations: str | None) -> None:
        """By hand, as a user would."""
        body = {"metadata": {"annotations": annotations}, "data": {CONFIG_KEY: fast_yaml.safe_dump(content)}}
        self.api("one").patch(CONFIG_PATH, body)

    def annotate(self, **annotations: str | None) -> None:
        self.api("one").patch(CONFIG_PATH, {"metadata": {"annotations": annotations}})

    def show_image(self, image: str) -> None:
        """What the Deployment of Kueue says of its image."""
        (container,) = self.api("one").get(DEPLOYMENT_PATH)["spec"]["template"]["spec"]["containers"]
        template = {"spec": {"containers": [{**container, "image": image}]}}
        self.api("one").patch(DEPLOYMENT_PATH, {"spec": {"template": template}})
        wait_for_kueue(self.api("one"))

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.config_map["metadata"].get("annotations") or {}
        return {name: text for name, text in found.items() if name.startswith("kfleet.dev/")}

    @property
    def restarts(self) -> int:
        """How often Kueue was restarted, plus one."""
        return int(self.api("one").get(DEPLOYMENT_PATH)["metadata"]["generation"])

    @property
    def pid(self) -> int:
        return self.sandbox.state.part(f"{self.contexts['one']}/kueue").pid

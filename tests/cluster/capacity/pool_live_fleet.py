"""A fleet with a MasterQueue on the sandbox, and pools that speak while a command runs."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.builders import Document, announcement, local_queue, master_queue
from tests.cluster.live_fleet import KUEUE_ROOT, Answer, LiveFleet

LEDGER = "/api/v1/namespaces/kueue-system/configmaps/kfleet-{}-ledger"
SHORT = ("--observe-for", "3")


@dataclass
class PoolLiveFleet:
    live_fleet: LiveFleet
    url: str
    publish: Callable[[str, bytes], None]

    @property
    def name(self) -> str:
        return self.live_fleet.name

    @property
    def subject(self) -> str:
        return f"{self.name}.resources"

    def master(self, **more: Any) -> Document:
        return master_queue(self.name, self.url, self.subject, **more)

    def commit(self, *documents: Document, policy: Mapping[str, Any] | None = None, **more: Any) -> None:
        self.live_fleet.commit(self.master(**more), *documents, policy=policy)

    def namespace_queue(self, namespace: str, queue: str = "") -> Document:
        return local_queue("main", namespace, queue or self.name)

    def apply(self, *options: str, **pools: bytes) -> Answer:
        """Apply, while pools announce themselves again and again."""
        with self.speaking(**pools):
            return self.live_fleet.apply(*(options or SHORT))

    def plan(self, *options: str, **pools: bytes) -> Answer:
        with self.speaking(**pools):
            return self.live_fleet.plan(*(options or SHORT))

    @contextmanager
    def speaking(self, **pools: bytes) -> Iterator[None]:
        ended = threading.Event()

        def speak() -> None:
            while not ended.is_set():
                for pool, payload in pools.items():
                    self.publish(f"{self.subject}.{pool}", payload)
                ended.wait(0.2)

        thread = threading.Thread(target=speak)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def queue(self, name: str = "") -> dict[str, Any]:
        return self.live_fleet.api().get(f"{KUEUE_ROOT}/clusterqueues/{name or self.name}")

    def quotas(self, name: str = "") -> dict[str, str]:
        """The nominal cpu of each flavor."""
        groups = self.queue(name)["spec"].get("resourceGroups", ())
        return {
            flavor["name"]: next(one["nominalQuota"] for one in flavor["resources"] if one["name"] == "cpu")
            for group in groups
            for flavor in group["flavors"]
        }

    def flavor(self, pool: str) -> dict[str, Any] | None:
        return self.live_fleet.api().find(f"{KUEUE_ROOT}/resourceflavors/{self.name}-nats-{pool}")

    def ledger(self) -> dict[str, Any] | None:
        return self.live_fleet.api().find(LEDGER.format(self.name))

    def clean(self) -> None:
        if self.ledger():
            self.live_fleet.api().delete(LEDGER.format(self.name))


__all__ = ["SHORT", "PoolLiveFleet", "announcement"]

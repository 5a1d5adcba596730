"""How the manager's Kueue logs in to a worker, as the fleet says it."""

from dataclasses import dataclass
from datetime import timedelta

from reconciler.objects import Manifest
from reconciler.spec.duration import parse_duration


@dataclass(frozen=True, slots=True)
class Credentials:
    """How the manager's Kueue logs in to a worker: a token that kfleet issues, unless one of the last two is set.

    `server` is empty where the manager's network sees the worker under the address that kfleet uses.
    """

    lifetime: timedelta = timedelta(days=30)
    server: str = ""
    secret: str = ""
    cluster_profile: str = ""

    @property
    def is_issued(self) -> bool:
        return not (self.secret or self.cluster_profile)


DEFAULT = Credentials()


def read_credentials(credentials: Manifest) -> Credentials:
    return Credentials(
        lifetime=parse_duration(credentials["lifetime"]) if "lifetime" in credentials else DEFAULT.lifetime,
        server=credentials.get("server", "").rstrip("/"),
        secret=credentials.get("secret", ""),
        cluster_profile=credentials.get("clusterProfile", ""),
    )

"""What can be wrong with the answers of a cluster, by chance."""

import random

from tests.cluster.faults.proxy import WRITES, Deed, Fault

PATHS = (
    "",
    "/apis",
    "/clusterqueues",
    "/clusterroles",
    "/configmaps/kfleet-",
    "/leases",
    "/localqueues",
    "/multikueueclusters",
    "/multikueueconfigs",
    "/namespaces",
    "/nodes",
    "/resourceflavors",
    "/secrets",
    "/selfsubjectrulesreviews",
    "/workloads",
)
CARRIED_PATHS = (
    *PATHS,
    "/admissionchecks",
    "/apis/control.kubestellar.io/v1alpha1$",
    "/bindingpolicies",
    "/customtransforms",
    "/jobs",
    "/jobs",
    "/pods",
)
PAGES = {
    404: "<html>default backend - 404</html>",
    200: '{"login": "please"}',
    502: "<html>bad gateway</html>",
}
# Well-formed, with a kind, and still no answer: a login page for programs, and a list of nothing that has a name.
OTHER_PAGES = (
    '{"kind": "Login", "apiVersion": "v1", "metadata": {}}',
    '{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [{}]}',
)
# How many of the faults of writes meet what is only asked by a write.
DRY_RUNS = 0.3
HALF_A_PAGE = '{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [{"metada'
# What gateways say to programs, whatever the status is.
OF_A_GATEWAY = '{"code": 14, "message": "no healthy upstream", "details": [{"@type": "google.rpc.ErrorInfo"}]}'
REASONS = {403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable", 429: "TooManyRequests"}


def random_fault(chance: random.Random, paths: tuple[str, ...] = PATHS) -> Fault:
    methods = chance.choice(("GET", "GET", WRITES, ".*"))
    is_dry_run = methods != "GET" and chance.random() < DRY_RUNS
    path, times = chance.choice(paths), chance.choice((1, 2, 5, 30))
    deed = chance.choice((Deed.ANSWER, Deed.ANSWER, Deed.ANSWER, Deed.CLOSE, Deed.CUT, Deed.HOLD, Deed.HOLD_ANSWER))
    if deed is not Deed.ANSWER:
        return Fault(deed, path, methods, times=times, is_dry_run=is_dry_run)
    status = chance.choice((*PAGES, *REASONS))
    reason = REASONS.get(status, "")
    page = chance.choice(_pages(status))
    return Fault(deed, path, methods, status=status, reason=reason, page=page, times=times, is_dry_run=is_dry_run)


def _pages(status: int) -> tuple[str, ...]:
    """What may be answered with a status; empty is an API server's own Status."""
    if status == 200:
        return (PAGES[200], HALF_A_PAGE, *OTHER_PAGES)
    return (PAGES.get(status, ""), PAGES.get(status, ""), OF_A_GATEWAY)

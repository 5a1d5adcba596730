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
HALF_A_PAGE = '{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [{"metada'
REASONS = {403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable", 429: "TooManyRequests"}


def random_fault(chance: random.Random, paths: tuple[str, ...] = PATHS) -> Fault:
    methods = chance.choice(("GET", "GET", WRITES, ".*"))
    path, times = chance.choice(paths), chance.choice((1, 2, 5, 30))
    deed = chance.choice((Deed.ANSWER, Deed.ANSWER, Deed.ANSWER, Deed.CLOSE, Deed.CUT, Deed.HOLD, Deed.HOLD_ANSWER))
    if deed is not Deed.ANSWER:
        return Fault(deed, path, methods, times=times)
    status = chance.choice((*PAGES, *REASONS))
    page = chance.choice((PAGES[200], HALF_A_PAGE, *OTHER_PAGES)) if status == 200 else PAGES.get(status, "")
    return Fault(deed, path, methods, status=status, reason=REASONS.get(status, ""), page=page, times=times)

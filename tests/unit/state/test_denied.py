"""Lists that are denied: by the API server, which means what it says, or by a gateway, which knows nothing of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.errors import ClusterError
from reconciler.objects import ApiKind
from reconciler.state.applyset import Inventory, SetName
from reconciler.state.model import ClusterView
from reconciler.state.observe import look
from tests.unit.paper_server import HUB, answering

SET = SetName("test", "kueue-system")
SECRETS = ApiKind("", "v1", "Secret", "secrets", is_namespaced=True)
EVERYWHERE, TEAM, OWN = "/api/v1/secrets", "/api/v1/namespaces/team/secrets", "/api/v1/namespaces/kueue-system/secrets"
FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "secrets is forbidden"}
OF_A_GATEWAY = {"error": "rate limited", "status": 403}
NAMED = {"metadata": {"name": "token", "namespace": "kueue-system"}}
LISTED = {"kind": "SecretList", "metadata": {}, "items": [NAMED]}


def looked(denied: Mapping[str, Any]) -> ClusterView:
    inventory = Inventory(kinds=frozenset({"Secret"}), namespaces=frozenset({"team"}))
    probed = ClusterView(HUB, SET, "uid", inventory=inventory, served={("", "Secret"): (SECRETS,)})
    port = answering(lambda path: (403, denied[path]) if path in denied else (200, LISTED))
    return look(port, probed, ())


def test_kind_that_may_not_be_listed_everywhere_is_listed_where_it_may_be() -> None:
    view = looked({EVERYWHERE: FORBIDDEN, TEAM: FORBIDDEN})
    assert [ref.name for ref in view.live] == ["token"]
    assert not view.gaps and view.listed == {("", "Secret")}


@pytest.mark.parametrize("denied", [{EVERYWHERE: OF_A_GATEWAY}, {EVERYWHERE: FORBIDDEN, TEAM: OF_A_GATEWAY}])
def test_kind_that_a_gateway_denies_was_not_seen(denied: Mapping[str, Any]) -> None:
    """Else what is in that namespace would count as gone, and leave the inventory."""
    view = looked(denied)
    assert not view.live and not view.listed
    assert [(gap.what, "403" in gap.why) for gap in view.gaps] == [("Secret", True)]


def test_only_an_api_server_says_that_something_is_forbidden() -> None:
    assert ClusterError("hub", "x", status=403, reason="Forbidden").is_forbidden
    assert not ClusterError("hub", "x", status=403).is_forbidden

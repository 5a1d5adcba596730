"""Has the workers issue the tokens that a plan asks for, right before the manager's Secrets are written."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.apply.retry import Patience, with_retries
from reconciler.credential import TokenWish, with_token
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName, Manifest
from reconciler.outcome import Outcome
from reconciler.plan.model import Action, Change, ClusterPlan
from reconciler.ports import ClusterPort

PARALLEL = 16
# The manager waits for its workers here: what a worker does not give soon, the next run gets.
_PATIENCE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Issued:
    """A plan whose Secrets have their tokens, without those for which none could be had."""

    plan: ClusterPlan
    failures: tuple[Outcome, ...] = ()


def issue_tokens(plan: ClusterPlan, ports: Mapping[ClusterName, ClusterPort], patience: Patience) -> Issued:
    waiting = [change for change in plan.changes if change.token is not None and change.action is not Action.HOLD]
    if not waiting:
        return Issued(plan)
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(lambda change: _with_token(change, ports, patience), waiting))
    done = {answer.ref: answer for answer in answers if isinstance(answer, Change)}
    failures = tuple(answer for answer in answers if isinstance(answer, Outcome))
    failed = {failure.ref for failure in failures}
    changes = tuple(done.get(change.ref, change) for change in plan.changes if change.ref not in failed)
    return Issued(replace(plan, changes=changes), failures)


def _with_token(change: Change, ports: Mapping[ClusterName, ClusterPort], patience: Patience) -> Change | Outcome:
    wish = change.token
    if wish is None or change.manifest is None:
        return change
    port = ports.get(wish.worker)
    if port is None:
        problem = f"no token: there is no connection to {wish.worker}"
        return Outcome(change.ref, change.action, problem, is_tokenless=True)
    try:
        return change._replace(manifest=_filled(port, change.manifest, wish, patience))
    except ClusterError as error:
        problem = f"no token: {wish.worker}: {error.problem}"
        return Outcome(change.ref, change.action, problem, is_tokenless=True)


def _filled(port: ClusterPort, manifest: Manifest, wish: TokenWish, patience: Patience) -> Manifest:
    # Patience of its own: a worker that is silent must not keep the manager from being written to.
    own = replace(patience.for_one_cluster(), total=_PATIENCE)
    answer, _ = with_retries(lambda: port.post(wish.path, wish.request), own)
    return with_token(manifest, wish, str(answer["status"]["token"]))

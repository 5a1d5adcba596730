"""Steps beside objects: requests the tokens of a plan from the workers, and places jobs for KubeStellar.

Tokens are requested right before the manager's Secrets are written.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from reconciler.apply.retry import RetryPolicy, with_retries
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kubestellar.plan import PlacementStep, Write
from reconciler.multikueue.token import TokenRequestSpec, with_token
from reconciler.objects import ClusterName, Manifest
from reconciler.plan.model import Action, Change, ClusterPlan
from reconciler.plan.outcome import Outcome

PARALLEL = 16
# The manager's writes wait for its workers here. A token that a worker does not issue in time is for the next run.
_TOKEN_TIMEOUT = timedelta(seconds=5)
FIELD_MANAGER = "kfleet-placement"
# The job is gone, or a new one has its name: the next run observes it again.
_GONE = {404, 409}


@dataclass(frozen=True, slots=True)
class Issued:
    """A plan whose Secrets have their tokens, without Secrets for which no token was issued."""

    plan: ClusterPlan
    failures: tuple[Outcome, ...] = ()


def issue_tokens(plan: ClusterPlan, clients: Mapping[ClusterName, ClusterClient], retries: RetryPolicy) -> Issued:
    waiting = [change for change in plan.changes if change.token is not None and change.action is not Action.HOLD]
    if not waiting:
        return Issued(plan)
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = list(pool.map(lambda change: _with_token(change, clients, retries), waiting))
    done = {answer.ref: answer for answer in answers if isinstance(answer, Change)}
    failures = tuple(answer for answer in answers if isinstance(answer, Outcome))
    failed = {failure.ref for failure in failures}
    changes = tuple(done.get(change.ref, change) for change in plan.changes if change.ref not in failed)
    return Issued(replace(plan, changes=changes), failures)


def _with_token(change: Change, clients: Mapping[ClusterName, ClusterClient], retries: RetryPolicy) -> Change | Outcome:
    request = change.token
    if request is None or change.manifest is None:
        return change
    client = clients.get(request.worker)
    if client is None:
        problem = f"no token: there is no connection to {request.worker}"
        return Outcome(change.ref, change.action, problem, is_tokenless=True)
    try:
        return change._replace(manifest=_filled(client, change.manifest, request, retries))
    except ClusterError as error:
        problem = f"no token: {request.worker}: {error.problem}"
        return Outcome(change.ref, change.action, problem, is_tokenless=True)


def _filled(client: ClusterClient, manifest: Manifest, request: TokenRequestSpec, retries: RetryPolicy) -> Manifest:
    # A separate, short timeout: a silent worker must not delay writes to the manager.
    own = replace(retries.for_one_cluster(), total=_TOKEN_TIMEOUT)
    answer, _ = with_retries(lambda: client.post(request.path, request.request), own)
    return with_token(manifest, request, str(answer["status"]["token"]))


def place_jobs(client: ClusterClient, steps: tuple[PlacementStep, ...], retries: RetryPolicy) -> tuple[Outcome, ...]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return tuple(pool.map(lambda step: _carry_out(client, step, retries), steps))


def _carry_out(client: ClusterClient, step: PlacementStep, retries: RetryPolicy) -> Outcome:
    attempts = 0
    try:
        for write in step.writes:
            is_there, tries = with_retries(partial(_apply, client, write), retries)
            attempts += tries
            if not is_there:
                break
    except ClusterError as error:
        return Outcome(step.ref, Action.UPDATE, error.problem)
    return Outcome(step.ref, Action.UPDATE, attempts=attempts)


def _apply(client: ClusterClient, write: Write) -> bool:
    """Apply with force: only kfleet places jobs, and the manifest contains the values that the user wrote."""
    try:
        client.apply_at(write.path, write.manifest, manager=FIELD_MANAGER, is_forced=True, is_dry_run=False)
    except ClusterError as error:
        if error.status not in _GONE:
            raise
        return False
    return True

"""What a change breaks although no quota changes: names in job manifests, and deletes that a policy refuses."""

from reconciler.diff.make import compare_sides
from reconciler.diff.model import QueueNameChange, RenamedDocument
from reconciler.diff.text import diff_markdown, diff_text
from reconciler.objects import ClusterName
from tests.builders import SMALL_FLEET, fleet_document, labelled_flavor, local_queue, queue, quota, tenant
from tests.unit.diff.sides import compare, side

EAST = ClusterName("east")
CPU = labelled_flavor("cpu", {"cpu": 100})
ONLY_EAST = {"clusters": {"names": ["east"]}}
NLP, LANGUAGE, VISION = (queue(name, quota("cpu", {"cpu": 10}), **ONLY_EAST) for name in ("nlp", "language", "vision"))
SEARCH = tenant("search", "nlp", "search")


def test_rename_of_a_queue_is_recognised_with_what_it_breaks() -> None:
    diff = compare((CPU, NLP, SEARCH), (CPU, LANGUAGE, tenant("search", "language", "search")))
    assert diff.renames == (RenamedDocument("Queue", "nlp", "language"),)
    assert diff.queue_names == (QueueNameChange("search", "nlp", ("language",), (EAST,)),)
    text = diff_text(diff)
    assert "  Queue nlp -> language, with the same content: " in text
    assert (
        "  search: jobs labelled kueue.x-k8s.io/queue-name: nlp find no queue on east; there is language "
        "(to keep the name, set localQueue: nlp in the Tenant)"
    ) in text
    assert "- **renamed:** Queue nlp -> language" in diff_markdown(diff)


def test_team_that_moves_to_another_queue_must_change_its_jobs_unless_it_keeps_the_name() -> None:
    moved = tenant("search", "vision", "search")
    diff = compare((CPU, NLP, VISION, SEARCH), (CPU, NLP, VISION, moved))
    assert diff.queue_names == (QueueNameChange("search", "nlp", ("vision",), (EAST,)),) and not diff.renames
    kept = tenant("search", "vision", "search", localQueue="nlp")
    assert compare((CPU, NLP, VISION, SEARCH), (CPU, NLP, VISION, kept)).queue_names == ()


def test_team_that_leaves_breaks_no_name() -> None:
    """All of its queues go, which the section on namespaces says."""
    assert compare((CPU, NLP, SEARCH), (CPU, NLP)).queue_names == ()


def test_queues_of_different_content_are_no_rename() -> None:
    other = queue("other", quota("cpu", {"cpu": 11}), **ONLY_EAST)
    assert compare((CPU, NLP), (CPU, other)).renames == ()


def test_local_queue_that_a_tenant_takes_over_changes_nothing_for_its_namespace() -> None:
    written = local_queue("nlp", "search", "nlp")
    written["metadata"]["annotations"] = {"kfleet.dev/clusters": "east"}
    diff = compare((CPU, NLP, written), (CPU, NLP, SEARCH))
    assert diff.access == () and diff.queue_names == ()


def test_deletes_that_the_policy_refuses_are_predicted_without_namespaces_that_stay() -> None:
    fleet = (fleet_document("test", policy={"prune": {"maxDeletes": 1, "maxPercent": 100}}), *SMALL_FLEET[1:])
    before, after, fewer = (side(*some, base=fleet) for some in ((CPU, NLP, SEARCH), (CPU,), (CPU, NLP)))
    gone = compare_sides(before, after)
    assert "  - Namespace/search  (kfleet lets go of it and does not delete it)" in diff_text(gone)
    assert gone.refusal == (
        "2, and policy.prune.maxDeletes is 1: apply would delete nothing; check the plan, then use --confirm-deletes "
        "with its number"
    )
    assert f"would be refused: {gone.refusal}" in diff_text(gone)
    assert f"- **would be refused:** {gone.refusal}" in diff_markdown(gone)
    assert compare_sides(before, fewer).refusal == "", "the LocalQueue alone goes"

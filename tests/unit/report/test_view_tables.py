"""The tables of `kfleet get`, as text: aligned in a pipe, cut and with bars on a terminal."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.objects import ClusterName
from reconciler.quantity import parse
from reconciler.report.tables import Cell, Layout, Table, age_text, amount_text, bar, table_lines
from reconciler.report.view_tables import (
    clusters_table,
    cohorts_table,
    jobs_table,
    pools_table,
    queues_table,
    tenants_table,
)
from reconciler.spec.enums import CapacitySource
from reconciler.view.model import FleetView, PlanFacts, PoolEntry, PoolState
from tests.builders import cohort, cpu_group, main_tenant, open_queue, spec_of
from tests.unit.view.live_objects import (
    ADMITTED,
    condition,
    live_queue,
    live_workload,
    local_queue_of,
    lost_cluster,
    seen_cluster,
    view_of,
)


def lines(table: Table, **layout: object) -> list[str]:
    return list(table_lines(table, Layout(**layout)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resource", "amount", "want"),
    [
        ("cpu", "45600m", "45.6"),
        ("cpu", "500m", "500m"),
        ("cpu", "0", "0"),
        ("cpu", "4", "4"),
        ("memory", "195421863936", "182Gi"),
        ("memory", "1536Mi", "1.5Gi"),
        ("memory", "512", "512"),
        ("nvidia.com/gpu", "12", "12"),
    ],
)
def test_amount_is_short_enough_to_read(resource: str, amount: str, want: str) -> None:
    assert amount_text(resource, parse(amount)) == want


def test_amount_that_is_not_known_is_a_question_mark() -> None:
    assert amount_text("cpu", None) == "?"


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        (0, "0s"),
        (119, "119s"),
        (150, "2m30s"),
        (1200, "20m"),
        (5 * 3600 + 60, "5h1m"),
        (9 * 3600, "9h"),
        (90000, "25h"),
    ],
)
def test_age_is_as_kubectl_prints_it(seconds: int, want: str) -> None:
    assert age_text(timedelta(seconds=seconds)) == want


def test_age_of_days() -> None:
    assert (age_text(timedelta(days=3, hours=4)), age_text(timedelta(days=30))) == ("3d4h", "30d")


@pytest.mark.parametrize(("part", "want"), [(0, "░░░░░░"), (0.5, "███░░░"), (1, "██████"), (7, "██████")])
def test_bar_is_never_longer_than_full(part: float, want: str) -> None:
    assert bar(part) == want


TABLE = Table(("NAME", "REASON"), ((Cell("a", "bold"), Cell("x" * 30)), (Cell("long-name"), Cell("-", bar=0.5))))


def test_table_is_aligned_and_complete_in_a_pipe() -> None:
    assert lines(TABLE) == ["NAME       REASON", f"a          {'x' * 30}", "long-name  -"]


def test_table_is_cut_at_the_width_of_a_terminal_and_has_bars() -> None:
    found = lines(TABLE, width=36, has_bars=True)
    assert found == ["NAME       REASON", f"a          {'x' * 24}…", "long-name  ███░░░ -"]
    assert max(map(len, found)) == 36


def test_narrow_terminal_shows_names_in_full_instead_of_optional_columns() -> None:
    row = (Cell("queue-001"), Cell("gpu-cohort"), Cell("4/64", bar=0.1), Cell("a long reason, in many words"))
    table = Table(("NAME", "COHORT", "CPU", "REASON"), (row,), optional=("COHORT",))
    assert lines(table, width=64)[1] == "queue-001  gpu-cohort  4/64  a long reason, in many words"
    assert lines(table, width=53, has_bars=True)[1] == "queue-001  gpu-cohort  4/64  a long reason, in many …"
    assert lines(table, width=52, has_bars=True)[1] == "queue-001  4/64  a long reason, in many words"
    assert lines(table, width=24)[1] == "queue-0…  4/64  a long …"


def test_all_columns_are_in_a_pipe_and_on_a_wide_terminal() -> None:
    for width in (None, 120):
        assert "COHORT" in lines(queues_table(small_view()), width=width)[0]
        assert "KIND" in lines(jobs_table(small_view()), width=width)[0]


def test_bars_are_left_out_where_amounts_would_be_cut() -> None:
    table = Table(("NAME", "CPU", "MEMORY"), ((Cell("queue"), Cell("24/128", bar=0.2), Cell("96Gi/512Gi", bar=0.2)),))
    assert lines(table, width=30, has_bars=True)[1] == "queue  24/128  96Gi/512Gi"
    assert lines(table, width=60, has_bars=True)[1] == "queue  █░░░░░ 24/128  █░░░░░ 96Gi/512Gi"


def test_table_without_headers() -> None:
    assert lines(TABLE, has_headers=False)[0].startswith("a ")


def test_table_is_painted_after_it_is_aligned() -> None:
    found = lines(TABLE, paint=lambda text, style: f"<{style}>{text}</>")
    assert found[1] == f"<bold>a        </>  {'x' * 30}"


def test_text_of_a_cluster_cannot_control_the_terminal() -> None:
    assert lines(Table(("NAME",), ((Cell("a\x1b[2Jb\nc"),),)))[1] == "a [2Jb c"


def small_view() -> FleetView:
    return view_of(
        seen_cluster(
            "east",
            cohort("team"),
            live_queue("main", cpu_group("4"), "6", cohortName="team"),
            live_queue("side", cpu_group("4"), "1", cohortName="team", stopPolicy="Hold"),
            local_queue_of("main"),
            live_workload("runs", *ADMITTED, held={"cpu": "6"}),
            live_workload("waits", condition("QuotaReserved", "False", "Pending", "no room")),
        ),
        lost_cluster("west"),
        spec=spec_of(open_queue("main", "default", dispatch="none"), main_tenant("vision", "main", "team")),
        facts={ClusterName("hub"): PlanFacts(0, 0), ClusterName("east"): PlanFacts(2, 1)},
    )


def test_clusters_show_unknown_for_what_was_not_observed() -> None:
    assert lines(clusters_table(small_view())) == [
        "NAME  ROLE     STATE        KUBERNETES  KUEUE    SYNC       DRIFT  UNHEALTHY",
        "hub   manager  ok           ?           v0.19.0  in sync    0      0",
        "east  worker   ok           ?           v0.19.0  2 changes  1      0",
        "west  worker   unreachable  ?           ?        ?          ?      ?",
    ]
    assert lines(clusters_table(small_view(), is_wide=True))[3].endswith("no     the cluster: connection refused")


def test_queues_show_the_sum_first_and_what_is_borrowed_and_lent() -> None:
    assert lines(queues_table(small_view())) == [
        "NAME  CLUSTER  COHORT  STATE    PENDING  RUNNING  CPU",
        "main  all      -       -        ?        ?        ?/?",
        "main  east     team    active   0        0        6/4 +2",
        "main  west     -       ?        ?        ?        ?",
        "side  east     team    stopped  0        0        1/4 -2",
    ]


def test_wide_queues_name_lenders_and_borrowers() -> None:
    found = lines(queues_table(small_view(), is_wide=True))
    assert [line.split("default")[1].split()[:10] for line in found if "default" in line] == [
        ["cpu", "4", "6", "6", "2", "from", "side", "2", "0", "0"],
        ["cpu", "4", "1", "1", "0", "2", "to", "main", "2", "0"],
    ]


def test_cohorts_sum_their_queues() -> None:
    assert lines(cohorts_table(small_view())) == [
        "NAME  CLUSTER  PARENT  QUEUES  CPU",
        "team  east     -       2       7/8",
    ]


def test_jobs_show_where_they_run_and_why_they_wait() -> None:
    assert lines(jobs_table(small_view())) == [
        "NAMESPACE  NAME   KIND      QUEUE  STATE     POS  RUNS ON  AGE  REASON",
        "team       runs   Workload  main   admitted  -    east     60m  -",
        "team       waits  Workload  main   pending   1    -        60m  no room",
    ]
    assert "vision" in lines(jobs_table(small_view(), is_wide=True))[1]


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        ("waits: place 4 of queue main on east; cpu: 2 more needed", "cpu: 2 more needed"),
        ("never: place 4 of queue main on east; cpu: 64 requested", "never: cpu: 64 requested"),
        ("never: there is no LocalQueue team/mian", "never: there is no LocalQueue team/mian"),
        ("inactive: its Workload has spec.active: false", "inactive: its Workload has spec.active: false"),
    ],
)
def test_reason_of_a_job_repeats_no_other_column(why: str, shown: str) -> None:
    (waiting,) = (replace(job, why=why) for job in small_view().jobs if job.name == "waits")
    assert lines(jobs_table(replace(small_view(), jobs=(waiting,))))[1].endswith(f"  60m  {shown}")


def test_tenants_of_a_queue_that_was_not_observed_everywhere_are_unknown() -> None:
    assert lines(tenants_table(small_view())) == [
        "NAME    NAMESPACES  QUEUE  PENDING  RUNNING  USED",
        "vision  team        main   ?        ?        ?",
    ]


def test_pools_show_state_age_and_quota() -> None:
    pools = (
        PoolEntry(
            name="east/spot",
            source=CapacitySource.NODES,
            cluster="east",
            flavor="spot",
            state=PoolState.FRESH,
            age=12,
            counted={"cpu": parse("8")},
            becomes=("one", "two"),
        ),
        PoolEntry(
            name="west/spot",
            source=CapacitySource.NODES,
            cluster="west",
            flavor="spot",
            state=PoolState.UNKNOWN,
            age=None,
            counted=None,
            becomes=None,
        ),
    )
    assert lines(pools_table(view_of(pools=pools))) == [
        "NAME       SOURCE  FLAVOR  STATE  AGE  COUNTED  BECOMES",
        "east/spot  nodes   spot    fresh  12s  cpu 8    one and 1 more",
        "west/spot  nodes   spot    ?      ?    ?        ?",
    ]

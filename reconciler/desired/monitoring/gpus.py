"""The dashboard of GPUs, by what NVIDIA's DCGM exporter shows.

No GPU stood by when this was written: the names are those of the exporter's own list of counters, and are all here.
"""

from reconciler.desired.monitoring.grafana import Dashboard, Panel, PanelKind, Query, Row, Variable

UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
MEMORY_USED = "DCGM_FI_DEV_FB_USED"
MEMORY_FREE = "DCGM_FI_DEV_FB_FREE"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
POWER = "DCGM_FI_DEV_POWER_USAGE"
LAST_XID = "DCGM_FI_DEV_XID_ERRORS"
DCGM_METRICS = (UTILIZATION, MEMORY_USED, MEMORY_FREE, TEMPERATURE, POWER, LAST_XID)

_CHOSEN = '{cluster=~"$cluster", Hostname=~"$node"}'
_BY_GPU = "{{Hostname}} {{gpu}}"


def gpu_dashboard() -> Dashboard:
    variables = (Variable("cluster", UTILIZATION, "cluster"), Variable("node", UTILIZATION, "Hostname"))
    memory = f"{MEMORY_USED}{_CHOSEN} / ({MEMORY_USED}{_CHOSEN} + {MEMORY_FREE}{_CHOSEN})"
    now = (
        Panel("GPUs", (Query(f"count({UTILIZATION}{_CHOSEN})"),), PanelKind.NUMBER),
        Panel("Mean utilization", (Query(f"avg({UTILIZATION}{_CHOSEN})"),), PanelKind.NUMBER, "percent"),
        Panel("Idle GPUs", (Query(f"count({UTILIZATION}{_CHOSEN} < 5) or vector(0)"),), PanelKind.NUMBER),
        Panel("Power", (Query(f"sum({POWER}{_CHOSEN})"),), PanelKind.NUMBER, "watt"),
    )
    use = (
        Panel("Utilization", (Query(f"{UTILIZATION}{_CHOSEN}", _BY_GPU),), unit="percent"),
        Panel("Memory in use", (Query(memory, _BY_GPU),), unit="percentunit"),
    )
    state = (
        Panel("Temperature", (Query(f"{TEMPERATURE}{_CHOSEN}", _BY_GPU),), unit="celsius"),
        Panel("Power", (Query(f"{POWER}{_CHOSEN}", _BY_GPU),), unit="watt"),
        Panel("Last XID error", (Query(f"{LAST_XID}{_CHOSEN} > 0", _BY_GPU),)),
    )
    return Dashboard("gpus", "GPUs", variables, (Row("Now", now), Row("Use", use), Row("State", state)))

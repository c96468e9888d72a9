"""The fleet as metrics for the textfile collector of node_exporter (text exposition format 0.0.4)."""

from __future__ import annotations

from cluster_fleet.status import Status
from cluster_words.metric_names import by_series, exposition

PREFIX = "cluster_fleet_"
MEANINGS = {
    f"{PREFIX}devices": "Devices that the fleet knows.",
    f"{PREFIX}runs": "Runs that the fleet remembers.",
    f"{PREFIX}newest_run_timestamp_seconds": "When the newest run was recorded.",
    f"{PREFIX}slow_ratio": "How much slower a device or host is that is slow, always or intermittently.",
    f"{PREFIX}slow_since_timestamp_seconds": "Since when it is.",
    f"{PREFIX}lost_device_hours": "Device-hours that findings that name it have cost.",
}


def metrics_text(status: Status) -> str:
    """Return all metrics of the fleet."""
    slow = [one for one in status.stories if one.is_slow]
    units = [(one, {"key": one.key, "unit": one.name, "host": one.host}) for one in slow]
    stories = [(one, {**labels, "metric": one.metric, "state": one.state}) for one, labels in units]
    # The cost of a unit is written once, in however many metrics it is slow.
    once = {one.key: (one, labels) for one, labels in units}.values()
    samples: dict[str, list[tuple[float, dict[str, str]]]] = {
        "devices": [(status.n_devices, {})],
        "runs": [(status.n_runs, {})],
        "newest_run_timestamp_seconds": [(status.end_s, {})],
        "slow_ratio": [(one.level, labels) for one, labels in stories],
        "slow_since_timestamp_seconds": [(one.since_s, labels) for one, labels in stories],
        "lost_device_hours": [(one.hours_lost, labels) for one, labels in once],
    }
    return exposition(by_series(PREFIX, samples), MEANINGS)

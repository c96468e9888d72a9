"""The fleet as metrics for the textfile collector of node_exporter (text exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_fleet.status import Status
from cluster_run.metric_names import head, label

PREFIX = "cluster_fleet_"
MEANINGS = {
    "devices": "Devices that the fleet knows.",
    "runs": "Runs that the fleet remembers.",
    "newest_run_timestamp_seconds": "When the newest run was recorded.",
    "slow_ratio": "How much slower a device or host is that is slow, always or intermittently.",
    "slow_since_timestamp_seconds": "Since when it is.",
    "lost_device_hours": "Device-hours that findings that name it have cost.",
}


def metrics_text(status: Status) -> str:
    """Return all metrics of the fleet."""
    return "".join(f"{line}\n" for line in _lines(status))


def _lines(status: Status) -> Iterator[str]:
    slow = [one for one in status.stories if one.is_slow]
    totals = {
        "devices": status.n_devices,
        "runs": status.n_runs,
        "newest_run_timestamp_seconds": status.end_s,
    }
    for name, value in totals.items():
        yield from head(PREFIX + name, MEANINGS[name])
        yield f"{PREFIX}{name} {value:.12g}"
    units = [(one, {"key": one.key, "unit": one.name, "host": one.host}) for one in slow]
    stories = [(one, {**labels, "metric": one.metric, "state": one.state}) for one, labels in units]
    # The cost of a unit is written once, in however many metrics it is slow.
    once = {one.key: (one, labels) for one, labels in units}.values()
    of_one = {
        "slow_ratio": [(one.level, labels) for one, labels in stories],
        "slow_since_timestamp_seconds": [(one.since_s, labels) for one, labels in stories],
        "lost_device_hours": [(one.hours_lost, labels) for one, labels in once],
    }
    for name, values in of_one.items():
        if values:
            yield from head(PREFIX + name, MEANINGS[name])
        for value, labels in values:
            yield f"{PREFIX}{name}{{{_labels(labels)}}} {value:.12g}"


def _labels(labels: dict[str, str]) -> str:
    return ", ".join(label(name, text) for name, text in labels.items())

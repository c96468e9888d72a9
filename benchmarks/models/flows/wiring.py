"""Where devices are, and what a transfer between two of them passes: links, cards, fabrics, uplinks.

Rates in MB per ms (GB/s), payload as measured on 910B: HCCS 19.1 a directed link, RoCE of 200 GE 24.3 a card.
A part of the network is named by what it is and where: `("card out", 3)`, `("rack in", 0)`.
"""

from __future__ import annotations

from benchmarks.models.flows.shape import Shape

HCCS, CARD, FAR, FABRIC = 19.1, 24.3, 12.0, 64.0
#: How long it takes until the first byte moves.
LATENCY_MS = {"HCCS": 0.02, "PCIE": 0.03, "RDMA": 0.05}
Part = tuple[str, int] | tuple[str, int, int]


class Wiring:
    """The machine of a job."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def host(self, rank: int) -> int:
        """Return the host that a device is in."""
        return rank // self.shape.per_host

    def rack(self, rank: int) -> int:
        """Return the rack that a device is in."""
        return self.host(rank) // self.shape.hosts_per_rack

    def mesh(self, rank: int) -> tuple[int, int]:
        """Return the mesh of HCCS that a device is in: its host, and which one of it."""
        shape = self.shape
        local = rank % shape.per_host
        n_meshes = max(1, shape.per_host // shape.per_mesh)
        return self.host(rank), local % n_meshes if shape.is_mesh_striped else local // shape.per_mesh

    def card(self, rank: int) -> int:
        """Return the network card of a device, by the first device that it serves."""
        return rank - rank % self.shape.devices_per_card

    def transport(self, source: int, target: int) -> str:
        """Return what carries a transfer, as profilers call it."""
        if self.host(source) != self.host(target):
            return "RDMA"
        return "HCCS" if self.mesh(source) == self.mesh(target) else self.shape.far_transport

    def path(self, source: int, target: int) -> tuple[Part, ...]:
        """Return all parts that a transfer passes, which others may pass too."""
        a, b = self.host(source), self.host(target)
        if a == b and self.mesh(source) == self.mesh(target):
            return (("port out", source), ("port in", target), ("link", source, target))
        if a == b:
            side = self.mesh(source)[1] % 2
            return (("fabric", a, side), ("link", source, target))
        parts: list[Part] = [("card out", self.card(source)), ("card in", self.card(target))]
        parts += [("link", source, target), ("host out", a), ("host in", b), ("hosts", a, b)]
        if self.rack(source) != self.rack(target):
            parts += [("rack out", self.rack(source)), ("rack in", self.rack(target))]
        return tuple(parts)

    def capacity(self, part: Part) -> float:
        """Return what a healthy part carries."""
        shape = self.shape
        cards = CARD * shape.per_host / shape.devices_per_card
        if part[0] == "link":
            kind = self.transport(part[1], part[2])  # type: ignore[misc]
            is_near = self.mesh(part[1]) == self.mesh(part[2])  # type: ignore[misc]
            return CARD if kind == "RDMA" else HCCS if is_near else FAR
        return {
            "port out": HCCS * (shape.per_mesh - 1),
            "port in": HCCS * (shape.per_mesh - 1),
            "fabric": FABRIC,
            "card out": CARD,
            "card in": CARD,
            "host out": cards,
            "host in": cards,
            "hosts": cards,
            "rack out": cards * shape.hosts_per_rack * shape.uplink_share,
            "rack in": cards * shape.hosts_per_rack * shape.uplink_share,
        }[part[0]]

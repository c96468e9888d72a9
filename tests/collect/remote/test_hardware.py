"""What a host tells of its devices, by the program that asks it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster_collect.remote.hardware import hardware_of, hardware_program
from cluster_run.manifest import Chip, Hardware

HERE = Path(__file__).parent


def test_a_host_tells_its_chips_by_their_vdie(tmp_path: Path) -> None:
    program = hardware_program()
    ended = subprocess.run(
        program.command, shell=True, input=program.stdin, capture_output=True, timeout=150, check=True,
        env={"PATH": f"{HERE}:/usr/bin:/bin"},
    )  # fmt: skip
    hardware = hardware_of(ended.stdout.partition(b"\0")[2])
    assert hardware is not None
    assert hardware.name
    first, second = hardware.chips
    assert first == Chip(
        0, 0, 0, "42C711D4 20B03704 4A10C8D4 14CC040A D2102000", "", "0000:c0:00.0", "7.1.0.3.220"
    )
    assert (second.device, second.vdie[-1]) == (1, "1")


_CHIPS = b"chip 0 0\nVDie ID : 42C711D4 20B03704 4A10C8D4 14CC040A D2102000\nend chip\nchip 0 1\n\nend chip\n"


@pytest.mark.parametrize(
    ("header", "rows", "found"),
    [
        # Without a physical number (driver 23.0), with one, and of Ascend 950, which has no logic one.
        ("NPU ID   Chip ID   Chip Logic ID   Chip Name",
         ["0  0  2  Ascend 910B", "0  1  -  Mcu"], [(2, None)]),
        ("NPU ID   Chip ID   Chip Logic ID   Chip Phy-ID   Chip Name",
         ["0  0  2  4  Ascend910", "0  1  3  5  Ascend910"], [(2, 4), (3, 5)]),
        ("NPU ID   Chip ID   Slot ID   Chip Phy-ID   Chip Name", ["0   0   9   6   Ascend950"], [(6, 6)]),
    ],
)  # fmt: skip
def test_the_numbers_of_a_chip_are_read_by_the_names_of_their_columns(
    header: str, rows: list[str], found: list[tuple[int, int | None]]
) -> None:
    table = "".join(f"map {line}\n" for line in (header, *rows)).encode()
    hardware = hardware_of(table + _CHIPS)
    assert hardware is not None
    assert [(one.device, one.physical) for one in hardware.chips] == found


@pytest.mark.parametrize(
    ("printed", "hardware"),
    [
        (b"", None),
        (b"name: n1\nserial: To Be Filled\x1b[31m\n", Hardware("n1", "To Be Filled[31m")),
        (b"name: n1\npcie: 0000:c2:00.0\npcie: 0000:c1:00.0\n",
         Hardware("n1", chips=(Chip(0, pcie="0000:c1:00.0"), Chip(1, pcie="0000:c2:00.0")))),
        (b"version /usr/local/Ascend/driver/version.info: Version=24.1.rc2\n",
         Hardware(versions={"driver": "24.1.rc2"})),
    ],
)  # fmt: skip
def test_what_hosts_print_becomes_a_value(printed: bytes, hardware: Hardware | None) -> None:
    assert hardware_of(printed) == hardware

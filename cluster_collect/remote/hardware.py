"""Asks a host for names of devices that outlive ranks and addresses, by one program that only reads.

`npu-smi info -t board` names each chip's VDie ID (driver 23.0 and newer); without that tool PCIe places are
read from /sys, and a host without NPUs tells its name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from cluster_collect.faults import HostError
from cluster_collect.remote.host_stream import Commands
from cluster_collect.remote.programs import RemoteProgram, asking_program
from cluster_collect.watchdog import until
from cluster_run.manifest import Chip, Hardware

_SCRIPT = rb"""
say "$marker"
exec 2>/dev/null </dev/null
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin
limit() { if command -v timeout >/dev/null; then timeout 10 "$@"; else "$@"; fi; }
show() { [ -r "$2" ] && printf '%s: %s\n' "$1" "$(head -n 1 "$2")"; }
printf 'name: %s\n' "$(uname -n)"
show serial /sys/class/dmi/id/product_serial
show product /sys/class/dmi/id/product_name
for file in /usr/local/Ascend/driver/version.info /usr/local/Ascend/firmware/version.info \
  /usr/local/Ascend/ascend-toolkit/latest/version.cfg; do
  [ -r "$file" ] || continue
  printf 'version %s: %s\n' "$file" "$(grep -i -m 1 -e '^version=' -e running_version "$file")"
done
for device in /sys/bus/pci/devices/*; do
  [ "$(cat "$device/vendor")" = 0x19e5 ] || continue
  case $(cat "$device/class") in 0x1200*) printf 'pcie: %s\n' "${device##*/}" ;; esac
done
if command -v npu-smi >/dev/null; then
  limit npu-smi info -m | while read -r line; do
    printf 'map %s\n' "$line"
    read -r card chip device rest <<END
$line
END
    case $card$chip$device in *[!0-9]*|'') continue ;; esac
    { printed=$(limit npu-smi info -t board -i "$card" -c "$chip")
      printf 'chip %s %s\n%s\nend chip\n' "$card" "$chip" "$printed"; } &
  done
  wait
fi
"""
_CHIP = re.compile(r"chip (\d{1,4}) (\d{1,4})\n(.*?)\nend chip\n", re.DOTALL)
#: The columns of drivers differ: 23.0 has no physical number, those of Ascend 950 no logic one.
_CARD, _OF_CARD, _LOGIC, _PHYSICAL = "NPU ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID"
_VDIE = re.compile(r"[0-9A-F]{8}(?: ?[0-9A-F]{8}){4}")
_VERSIONS = {"driver": "driver", "firmware": "firmware", "ascend-toolkit": "cann"}
#: No name or number is longer.
_LONGEST = 128


def hardware_program() -> RemoteProgram:
    """Return what runs on the host."""
    return asking_program(_SCRIPT)


def hardware_of(printed: bytes) -> Hardware | None:
    """Return what the program printed as a value; None if it printed nothing."""
    text = printed.decode(errors="replace")
    chips = tuple(sorted(_chips(text), key=lambda one: one.device))
    plain = dict(_fields(_CHIP.sub("", text)))
    if not chips:
        places = sorted(re.findall(r"^pcie: ([0-9a-f:.]{7,16})$", text, re.MULTILINE))
        chips = tuple(Chip(device=number, pcie=place) for number, place in enumerate(places))
    versions = {}
    for path, line in re.findall(r"^version (\S+): (.*)$", text, re.MULTILINE):
        name = next((name for part, name in _VERSIONS.items() if f"/{part}/" in path), "")
        number = re.search(r"\d[\w.]*", line.partition("=")[2])
        if name and number:
            versions[name] = number[0][:_LONGEST]
    found = Hardware(
        plain.get("name", ""), plain.get("serial", ""), plain.get("product", ""), chips, versions
    )
    return None if found == Hardware() else found


def _chips(text: str) -> Iterator[Chip]:
    numbers = _numbers(text)
    for card, chip, printed in _CHIP.findall(text):
        row = numbers.get((card, chip), {})
        reported, device = dict(_fields(printed)), row.get(_LOGIC, row.get(_PHYSICAL))
        if device is None:
            continue
        vdie = reported.get("VDie ID", "").upper()
        yield Chip(
            device=device,
            card=int(card),
            chip=int(chip),
            vdie=vdie if _VDIE.fullmatch(vdie) else "",
            serial=reported.get("Serial Number", ""),
            pcie=reported.get("PCIe Bus Info", "").lower(),
            firmware=reported.get("Firmware Version", ""),
            physical=row.get(_PHYSICAL),
        )


def _numbers(text: str) -> dict[tuple[str, str], dict[str, int]]:
    """Return the numbers of each chip by the column's name, by card and chip of the card."""
    lines = [re.split(r"\s{2,}|\t+", one.strip()) for one in re.findall(r"^map (.*)$", text, re.MULTILINE)]
    columns = next((one for one in lines if one[0] == _CARD), [_CARD, _OF_CARD, _LOGIC])
    rows = (dict(zip(columns, one, strict=False)) for one in lines)
    return {
        (row[_CARD], row.get(_OF_CARD, "")): {
            name: int(one) for name, one in row.items() if re.fullmatch(r"\d{1,4}", one)
        }
        for row in rows
    }


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Give name and value of each line; what is not printable may not reach a manifest or a page."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        clean = "".join(letter for letter in value.strip() if letter.isprintable())
        if colon and clean and clean.upper() not in ("NA", "N/A"):
            yield name.strip(), clean[:_LONGEST]


#: All chips of a host answer within some seconds, or stay unknown in this call.
_HARDWARE_DEADLINE_S = 20.0
_MAX_HARDWARE_BYTES = 1 << 18


async def ask_hardware(commands: Commands) -> Hardware | None:
    """Return a host's answer on its hardware; None without an answer, whatever the reason."""
    printed = bytearray()

    def take(data: bytes) -> None:
        printed.extend(data[: _MAX_HARDWARE_BYTES - len(printed)])

    try:
        asked = commands.run(hardware_program(), take)
        end_s = time.monotonic() + _HARDWARE_DEADLINE_S
        await until(asked, lambda: end_s - time.monotonic(), "asking for its hardware")
    except HostError:
        return None
    return hardware_of(bytes(printed))

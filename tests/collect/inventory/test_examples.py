"""Every example inventory loads, and means what its comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.inventory.load import InventoryRequest, load_inventory

EXAMPLES = Path(__file__).parents[3] / "inventories"
N_HOSTS = {"flat.yaml": 6, "bastion.yaml": 17, "shared_filesystem.yaml": 10, "r1.yaml": 3}


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_an_example_loads(path: Path) -> None:
    assert len(load_inventory(InventoryRequest(path), {}).specs) == N_HOSTS[path.name]


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_an_example_with_its_commented_keys_switched_on_loads(path: Path, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_ed25519").touch()
    lines = []
    for line in path.read_text().splitlines():
        commented, hash_sign, rest = line.partition("# ")
        key = rest.partition(":")[0]
        switchable = hash_sign and not commented.strip() and ": " in rest and key.replace("_", "").isalpha()
        lines.append(commented + rest if switchable and " " not in key else line)
    text = "\n".join(lines).replace("~", str(tmp_path))
    assert text != path.read_text().rstrip("\n") or path.name == "shared_filesystem.yaml"
    (tmp_path / path.name).write_text(text)
    inventory = load_inventory(InventoryRequest(tmp_path / path.name), {"NODE_PASSWORD": "x"})
    assert len(inventory.specs) == N_HOSTS[path.name]

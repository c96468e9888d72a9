"""The published JSON Schemas hold for what the commands write, and describe every field of it."""

import json
from typing import Any, get_args

import jsonschema
import pytest

from cluster_analysis.cli import main as analyse
from cluster_run.kinds import KINDS, FaultKind, WorkloadKind
from cluster_run.manifest import Chip, Hardware, HostOutcome, Manifest, Origin
from cluster_simulate.cli import main as simulate
from tools.renew_fields import PAGE, SHAPES, reference, schema, schema_path, schema_text

JOB = ("--tp", "2", "--pp", "2", "--dp", "4", "--steps", "5")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The three files of a job with faults, a damaged rank, and a baseline of other faults."""
    folder = tmp_path_factory.mktemp("schemas")
    faults = (("slow_rank:1.3@5", "slow_link:4@7-9"), ("slow_rank:1.3@3",))
    for name, scenarios in zip(("run1", "run0"), faults, strict=True):
        asked = [word for scenario in scenarios for word in ("--scenario", scenario)]
        assert simulate([str(folder / name), *JOB, *asked, "-q"]) == 0
    broken = next((folder / "run1").rglob("communication.json"))
    broken.write_text(broken.read_text()[:1000])
    assert analyse([str(folder / "run1"), "--baseline", str(folder / "run0"), "-q"]) in (0, 3)
    output = folder / "run1" / "cluster_analysis_output"
    return {
        "findings": json.loads((output / "findings.json").read_text()),
        "comparison": json.loads((output / "comparison.json").read_text()),
        "manifest": json.loads((folder / "run1" / "manifest.json").read_text()),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_a_schema_is_a_schema_and_what_is_written_is_valid(name, written):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    jsonschema.validate(written[name], schema(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_every_field_that_is_written_is_described(name, written):
    assert sorted(undescribed(written[name], schema(name), "")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_a_schema_refuses_another_version_and_a_missing_field(name, written):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**written[name], "schema": "other/9"}, schema(name))
    for field in schema(name)["required"]:
        less = {key: value for key, value in written[name].items() if key != field}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(less, schema(name))


@pytest.mark.parametrize("name", SHAPES)
def test_a_schema_has_all_names_that_the_program_can_write(name):
    assert schema_path(name).read_text("utf-8") == schema_text(name), "make gold renews it"


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (Manifest, ()),
        (HostOutcome, ("hosts", "items")),
        (Hardware, ("hosts", "items", "hardware")),
        (Chip, ("hosts", "items", "hardware", "chips", "items")),
        (Origin, ("origin",)),
    ],
)
def test_the_schema_of_the_manifest_has_the_fields_of_the_code(kind, place):
    node = schema("manifest")
    for name in place:
        node = node[name] if name == "items" else node["properties"][name]
    assert set(node["properties"]) - {"schema"} == set(kind.__dataclass_fields__)


def test_every_kind_of_finding_has_a_record():
    assert set(KINDS) == {*get_args(FaultKind), *get_args(WorkloadKind)}


def test_the_reference_of_fields_is_made_from_the_schemas():
    assert PAGE.read_text("utf-8") == reference(), "make gold renews it"


def undescribed(value: Any, node: dict[str, Any], path: str) -> set[str]:
    """Return the paths of fields that the schema says nothing about."""
    if isinstance(value, list):
        kinds = node.get("items", {})
        options = [kinds, *kinds.get("anyOf", ())]
        described = next((one for one in options if "properties" in one), {"additionalProperties": True})
        return {lost for one in value for lost in undescribed(one, described, f"{path}[]")}
    if not isinstance(value, dict) or "additionalProperties" in node or "properties" not in node:
        return set()
    known = node["properties"]
    lost = {f"{path}.{key}" for key in value if key not in known}
    return lost.union(
        *(undescribed(one, known[key], f"{path}.{key}") for key, one in value.items() if key in known)
    )

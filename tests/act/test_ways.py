"""Each way does what it says, twice if need be, and undoes only what is its own."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_act.values import Case, RefusedError, UncertainError, Way, reason_of
from cluster_act.ways.command import Command
from cluster_act.ways.kubernetes import CONDITION, Condition, Taint
from cluster_act.ways.mindcluster import MindCluster, public_fault
from cluster_act.ways.slurm import Slurm
from cluster_run.errors import UsageError
from cluster_words.phrase import Phrase
from tests.act.test_plan import CASE
from tests.commands import program

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parents[1] / "cluster_act/schemas/public_fault.schema.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    state = tmp_path / "cluster.json"
    monkeypatch.setenv("KUBECTL_STATE", str(state))
    monkeypatch.setenv("PATH", f"{HERE}:/usr/bin:/bin")
    return state


@pytest.mark.parametrize("way", [Condition(), Taint()])
def test_a_node_is_marked_once_and_unmarked_by_its_own_case_alone(cluster: Path, way: Way) -> None:
    other = replace(CASE, unit="vdie:6")
    way.check()
    way.apply(CASE)
    first = json.loads(cluster.read_text())["nodes"]["node001"]
    way.apply(CASE)
    with pytest.raises(RefusedError, match="already"):
        way.apply(other)
    with pytest.raises(RefusedError):
        way.undo(other)
    again = json.loads(cluster.read_text())["nodes"]["node001"]
    assert len(again["spec"]["taints"]) == len(first["spec"]["taints"])
    way.undo(CASE)
    node = json.loads(cluster.read_text())["nodes"]["node001"]
    assert node["spec"]["taints"] == []
    assert all(one["status"] == "False" for one in node["status"]["conditions"])
    way.undo(CASE)


def test_the_condition_is_what_others_read(cluster: Path) -> None:
    Condition().apply(replace(CASE, evidence=Phrase("x" * 5000, "")))
    (condition,) = json.loads(cluster.read_text())["nodes"]["node001"]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == (CONDITION, "True")
    assert condition["reason"] == "SlowDeviceConfirmed"
    assert len(condition["message"]) == 1024


@given(
    st.text(max_size=900), st.text(min_size=1, max_size=300), st.none() | st.integers(0, 31),
    st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,40}[A-Za-z0-9])?", fullmatch=True),
)  # fmt: skip
def test_whatever_a_case_says_its_fault_is_valid(
    evidence: str, unit: str, device: int | None, node: str
) -> None:
    devices = tuple(range(16)) if device is None else (device,)
    case = replace(CASE, evidence=Phrase(evidence, ""), unit=unit, device=device, node=node, devices=devices)
    described, ended = (public_fault(case, "CCAE", one, 1_795_810_000_000) for one in ("occur", "recover"))
    VALID.validate(described)
    VALID.validate(ended)
    # Only the same id ends a fault.
    assert described["faults"][0]["faultId"] == ended["faults"][0]["faultId"]


@pytest.mark.parametrize(
    "change",
    [{"faultId": "short"}, {"faultCode": "1"}, {"faultTime": 5}, {"description": "a\nb"}, {"assertion": "on"},
     {"influence": [{"nodeName": "N1", "deviceIds": [1]}]},
     {"influence": [{"nodeName": "n1", "deviceIds": [32]}]}],
)  # fmt: skip
def test_the_schema_refuses_what_clusterd_drops(change: dict[str, object]) -> None:
    document = public_fault(CASE, "CCAE", "occur", 1_795_810_000_000)
    VALID.validate(document)
    document["faults"][0].update(change)
    assert not VALID.is_valid(document)


def test_clusterd_is_told_and_told_that_it_is_over(cluster: Path, tmp_path: Path) -> None:
    site = tmp_path / "publicCustomization.json"
    codes = {"SubHealthFaultCodes": ["110001010"]}
    site.write_text(json.dumps({"publicFaultCode": codes, "publicFaultResource": ["cluster-act"]}))
    way = MindCluster(customization=site)
    for act, assertion in ((way.apply, "occur"), (way.undo, "recover")):
        act(CASE)
        config_map = json.loads(cluster.read_text())["maps"][CASE.token]
        assert config_map["metadata"]["labels"] == {"mc-consumer-publicfault": "true"}
        document = json.loads(config_map["data"]["PublicFault"])
        VALID.validate(document)
        assert document["faults"][0]["assertion"] == assertion


def test_a_fault_of_a_host_is_told_as_the_host_s() -> None:
    host = replace(CASE, device=None, devices=(0, 1, 4))
    assert MindCluster().described(host)[0].endswith("on the host node001")
    (fault,) = public_fault(host, "CCAE", "occur", 1_795_810_000_000)["faults"]
    assert fault["faultType"] == "Node"
    # Those of its devices that are known: ClusterD wants some, and none is guessed.
    assert fault["influence"] == [{"nodeName": "node001", "deviceIds": [0, 1, 4]}]


@pytest.mark.parametrize("devices", [(), (1, 32)])
def test_a_fault_without_devices_that_clusterd_takes_is_refused(devices: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError, match="device numbers 0 to 31"):
        public_fault(replace(CASE, device=None, devices=devices), "CCAE", "occur", 1_795_810_000_000)


def test_a_sender_that_clusterd_does_not_know_is_refused_before_anything_is_sent(
    cluster: Path, tmp_path: Path
) -> None:
    way = MindCluster(customization=tmp_path / "none.json")
    with pytest.raises(RefusedError, match="knows no sender cluster-act") as error:
        way.apply(CASE)
    assert "publicFaultResource" in error.value.advice
    assert not cluster.exists()
    MindCluster(sender="CCAE", customization=tmp_path / "none.json").check()


def test_the_site_s_command_is_told_what_to_do_and_its_failure_is_a_refusal(tmp_path: Path) -> None:
    says = 'echo "$1 $CLUSTER_ACT_NODE $CLUSTER_ACT_DEVICE"\n[ "$1" = apply ]'
    script = program(tmp_path / "act.sh", says)
    assert Command(str(script)).apply(CASE) == "node001: apply: apply node001 1"
    with pytest.raises(RefusedError, match="ended with 1"):
        Command(str(script)).undo(CASE)
    with pytest.raises(UsageError, match="no command"):
        Command("")


def test_a_question_that_is_not_answered_has_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_act.ways.process.DEADLINE_S", 1.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path / "scontrol", "exec sleep 60")
    with pytest.raises(RefusedError, match="scontrol did not end within 1 s"):
        Slurm().apply(CASE)
    told = "echo State=IDLE Reason=none"
    program(tmp_path / "scontrol", f'[ "$1" = update ] && exec sleep 60\n{told}')
    with pytest.raises(UncertainError, match="scontrol did not end within 1 s"):
        Slurm().apply(CASE)


def test_what_a_command_that_did_not_end_has_started_changes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_act.ways.process.DEADLINE_S", 0.5)
    script = program(tmp_path / "act.sh", f"(sleep 1.5; touch {tmp_path / 'changed'}) &\nwait")
    with pytest.raises(UncertainError, match="did not end"):
        Command(str(script)).apply(CASE)
    time.sleep(2.0)
    assert not (tmp_path / "changed").exists()


def test_no_node_is_drained_from_within_an_epilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_SCRIPT_CONTEXT", "epilog_slurmctld")
    with pytest.raises(RefusedError, match="must not drain"):
        Slurm().check()


def test_a_reason_is_one_line_with_the_same_beginning() -> None:
    case: Case = replace(CASE, evidence=Phrase("two\nlines", ""))
    assert reason_of(case) == f"cluster-act:{CASE.token} two lines"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"publicFaultResource": []}', "'publicFaultCode' is missing"),
        ("[]", "a value has another form"),
    ],
)
def test_a_list_of_senders_that_cannot_be_read_is_refused_in_words(
    tmp_path: Path, text: str, said: str
) -> None:
    site = tmp_path / "publicCustomization.json"
    site.write_text(text)
    with pytest.raises(RefusedError, match=f"{site.name}: cannot be read: {said}"):
        MindCluster(customization=site).check()

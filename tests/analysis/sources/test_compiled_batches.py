"""A batch of ranks by the compiled reader and by Python alone: the same rows by step, sums and uses."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.engine.joined import canonical
from cluster_analysis.engine.tasks import Batch, BatchBulk, BatchSummary, Wanted, read_batch
from cluster_analysis.sources.compiled import reader
from cluster_analysis.sources.errors import BadFileError, NotTogetherError, not_together
from cluster_analysis.sources.text.csv_text import read_columns, read_files
from cluster_analysis.tables.model import RankSource
from cluster_analysis.tables.schema import COLLECTIVES, LINKS, PACKETS, TOTALS
from cluster_analysis.topology.groups import GROUP_USE
from cluster_run.facts import Fact
from cluster_run.ids import Rank
from tests.analysis.sources.test_compiled_reader import by_python

if reader.compiled() is None:
    pytest.skip("the compiled reader could not be built here", allow_module_level=True)

TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
NOTHING = {
    "Transit Size(MB)": 0,
    "Transit Time(ms)": 0,
    "Bandwidth(GB/s)": 0,
    "Large Packet Ratio": 0,
    "Size Distribution": {},
}


def shuffled(members: dict[str, object], chance: random.Random, likely: float) -> dict[str, object]:
    """The members, now and then in another order, or one of them gone, or one more."""
    names = list(members)
    if chance.random() > likely:
        chance.shuffle(names)
    found = {name: members[name] for name in names if chance.random() < 0.5 + likely / 2}
    if chance.random() > likely:
        found["Remark"] = chance.choice(["x", None, [1, {"a": 2}], 1.5])
    return found


def number(chance: random.Random) -> float | int:
    kind = chance.randrange(5)
    if kind == 0:
        return chance.choice([0, 0.0, 1, 1.0])
    if kind == 1:
        return chance.uniform(0, 100)
    return round(chance.uniform(0, 10 ** chance.randrange(4)), chance.randrange(8))


def carried(chance: random.Random, likely: float) -> dict[str, object]:
    if chance.random() < 0.6:
        return NOTHING
    sizes = {chance.choice(["21.0", "21", "8.5", "0.5", "2e1"]): None for _ in range(chance.randrange(3))}
    packets = {size: [chance.randrange(9), number(chance)] for size in sizes}
    values = {name: number(chance) for name in NOTHING} | {"Size Distribution": packets}
    return shuffled(values, chance, likely)


def operator(chance: random.Random, likely: float) -> dict[str, object]:
    times: dict[str, object] = {"Start Timestamp(us)": round(1.7e15 + chance.uniform(0, 1e6), 1)}
    names = ("Elapse", "Transit", "Wait", "Synchronization", "Idle")
    rest = {f"{name} Time(ms)": number(chance) for name in names} | {"Wait Time Ratio": number(chance)}
    entries = {name: carried(chance, likely) for name in TRANSPORTS}
    if all(entries[name].get("Transit Size(MB)") == 0 for name in ("HCCS", "PCIE", "SIO")):
        entries["SDMA"] = NOTHING  # their sum; else it is of links without an entry, and not plain
    if chance.random() < 0.5:
        entries["UB"] = NOTHING if chance.random() < likely else carried(chance, likely)
    own = shuffled(entries, chance, likely)
    # What is needed stays: a rank without it is read alone.
    times |= {"Elapse Time(ms)": number(chance)} | shuffled(rest, chance, likely)
    parts = {"Communication Time Info": times, "Communication Bandwidth Info": own}
    return dict(reversed(parts.items())) if chance.random() > likely else parts


def communication(chance: random.Random, steps: Sequence[str], likely: float) -> dict[str, object]:
    found = {}
    for step in steps:
        levels: dict[str, object] = {}
        for level, stems in (("p2p", ("hcom_send_", "hcom_receive_")), ("collective", ("hcom_allReduce_",))):
            keys = [
                f"{chance.choice(stems)}_{chance.randrange(3)}_{at}_1@{chance.choice('abc')}"
                for at in range(chance.randrange(6))
            ]
            levels[level] = {key: operator(chance, likely) for key in keys}
        found[step] = levels
    return found


def matrix(chance: random.Random, steps: Sequence[str], likely: float) -> dict[str, object]:
    def link() -> dict[str, object]:
        kind, name = chance.choice(["HCCS", "RDMA"]), chance.choice(["hcom_allReduce__1_2_3", ""])
        sizes = {"Transit Size(MB)": number(chance), "Transit Time(ms)": number(chance)}
        return {"Transport Type": kind, **sizes, "Bandwidth(GB/s)": number(chance), "Op Name": name}

    keys = [f"allReduce-{variant}@{group}" for variant in ("top1", "middle", "total") for group in "ab"]
    return {
        step: {
            "p2p": {},
            "collective": {
                key: {f"{one}-{chance.randrange(4)}": link() for one in range(chance.randrange(4))}
                for key in keys
            },
        }
        for step in steps
    }


def said(outcome: tuple[BatchSummary, BatchBulk]) -> list[object]:
    """All that is known of a batch; dictionaries in an order of their own."""
    summary, bulk = outcome
    small = (
        (summary.totals, TOTALS),
        (summary.uses, GROUP_USE),
        (summary.packets, PACKETS),
        *((bulk.by_step[int(step)].load().collectives, COLLECTIVES) for step in summary.bulk_steps),
        *((bulk.by_step[int(step)].load().links, LINKS) for step in summary.bulk_steps),
    )
    return [
        summary.metadata,
        summary.bulk_steps,
        summary.problems,
        *(canonical([table], kind).to_pylist() for table, kind in small),
    ]


def batch_of(folder: Path, files: Sequence[tuple[object, object]]) -> Batch:
    sources = []
    for rank, contents in enumerate(files):
        paths = {}
        for role, content in zip(("communication", "matrix"), contents, strict=True):
            path = folder / f"{rank}.{role}.json"
            path.write_text(content if isinstance(content, str) else json.dumps(content))
            paths[role] = str(path)
        sources.append(RankSource(Rank(rank), "ascend_pt/text", paths, 1, part=str(folder)))
    return Batch(0, tuple(sources))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), likely=st.sampled_from([0.0, 0.5, 0.9, 1.0]), is_odd=st.booleans())
def test_a_batch_by_the_compiled_reader_is_that_of_python(
    tmp_path: Path, seed: int, likely: float, is_odd: bool
) -> None:
    chance = random.Random(seed)
    steps = ["step10", "step11", "step12"]
    files: list[tuple[object, object]] = []
    for _ in range(4):
        own = chance.sample(steps, chance.randint(1, 3))
        if is_odd and chance.random() < 0.3:
            own.append("10")  # a second name of a step
        files.append((communication(chance, own, likely), matrix(chance, own, likely)))
    if is_odd:
        files[chance.randrange(4)] = ("{", "")
    batch = batch_of(tmp_path, files)
    found = said(read_batch(batch, Wanted(spans=is_odd)))
    with by_python():
        assert said(read_batch(batch, Wanted(spans=is_odd))) == found


def test_step_files_of_a_batch_are_those_of_python(tmp_path: Path) -> None:
    chance = random.Random(5)
    steps = ["step1", "step2"]
    files = [(communication(chance, steps, 1.0), matrix(chance, steps, 1.0)) for _ in range(70)]
    batch = batch_of(tmp_path, files)
    found = said(read_batch(batch, Wanted(spans=False), f"{tmp_path}/compiled-"))
    with by_python():
        assert said(read_batch(batch, Wanted(spans=False), f"{tmp_path}/python-")) == found


def test_the_tables_of_a_step_hold_no_memory_of_other_steps(tmp_path: Path) -> None:
    chance = random.Random(7)
    steps = [f"step{number}" for number in range(8)]
    files = [(communication(chance, steps, 1.0), matrix(chance, steps, 1.0)) for _ in range(8)]
    _, bulk = read_batch(batch_of(tmp_path, files), Wanted(spans=False))
    for tables in (bulk.by_step[number].load() for number in range(8)):
        for table in (tables.collectives, tables.links):
            # What one of eight steps takes, and not what all of them do.
            assert table.get_total_buffer_size() < 3 * table.nbytes + 2000


PLAIN_CSV = [["Step,Computing", "1,2.5", "2,3.5"], ["Step,Computing", " 1 , 2.5 "]]


@pytest.mark.parametrize(
    "lines",
    [
        *PLAIN_CSV,
        ["Step,Computing"],
        ["Step,Computing", "1,2.5", "", "2,3.5"],
        ["Step,Computing", "1"],
        ["Step,Computing", "1,2,3"],
        ["Step,Computing", "1,2,"],
        ["Step,Computing", '1,"2,5"'],
        ["Step,Other", "1,2.5"],
        ["", "1,2.5"],
        [],
        ["Step,Computing", "1,\u4e2d"],
        ["Step,Computing", "1,\x00"],
        ["Step,Computing", "1,2.5" * 20_000],
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_csv_files_that_are_read_together_have_the_text_of_each(
    tmp_path: Path, lines: list[str], end: str
) -> None:
    paths = [str(tmp_path / f"{at}.csv") for at in range(3)]
    for path, own in zip(paths, (["Step,Computing", "7,8"], lines, ["Step,Computing", "9,10"]), strict=True):
        Path(path).write_text("\n".join(own) + (end if own == lines else "\n"), newline="")
    wanted = ("Step", "Computing")
    try:
        found = read_files([(path, rank) for rank, path in enumerate(paths)], wanted, (), not_together)
    except (NotTogetherError, BadFileError):
        found = None
    if found is not None:
        # What is not plain is read alone.
        alone = [read_columns(Path(path), wanted, never) for path in paths]
        text, ranks = found
        assert text.to_pylist() == pa.concat_tables(alone).to_pylist()
        assert ranks.tolist() == [rank for rank, one in enumerate(alone) for _ in range(one.num_rows)]
    assert found is not None or lines not in PLAIN_CSV or not end


def never(why: Fact, *also: Fact) -> None:
    raise AssertionError(f"nothing is to be told of a plain file: {why} {also}")


def test_a_file_that_cannot_be_opened_has_all_of_a_batch_refused(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{at}.json") for at in range(3)]
    for path in (paths[0], paths[2]):
        Path(path).write_text(json.dumps(communication(random.Random(3), ["step1"], 1.0)))
    assert reader.operators_of_files(paths, [0, 1, 2], with_places=False) is None
    assert reader.operators_of_files([paths[0], paths[2]], [0, 2], with_places=False) is not None

"""Where a rank is, is said in one way everywhere; commands name its device."""

import gzip
import json

from cluster_analysis.findings_json import document_to_json
from cluster_analysis.reports import commands, html, markdown, terminal
from cluster_analysis.reports.locator import locator
from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.sentences.results.words import load_dictionary
from cluster_hook.telling.verdict import read_verdict
from cluster_run.findings import Place
from tests.analysis.copies import replace
from tests.analysis.reports import builder

WHERE = f"rank {builder.SLOW_RANK} = host 1 / device {builder.SLOW_RANK}"


def test_every_report_tells_a_place_in_the_same_words(tmp_path):
    result = builder.degraded()
    (tmp_path / "findings.json").write_text(document_to_json(result.document))
    trace = json.loads(gzip.decompress(perfetto.render(result, [])))
    finding = next(event for event in trace["traceEvents"] if event["args"].get("name") == "slow_rank-5")

    assert finding
    assert f"Where: {WHERE}" in terminal.render(result, 100, colour=False)
    assert WHERE in markdown.render(result)
    assert WHERE in html.render(result).decode()
    assert WHERE in read_verdict(tmp_path / "findings.json").headline()


def test_with_addresses_the_place_is_a_name_on_a_door():
    named = builder.with_addresses(builder.degraded(), {"1": "node001"})

    assert f"rank {builder.SLOW_RANK} = node001 / device 5" in terminal.render(named, 100, colour=False)


def test_both_ends_of_a_link_have_a_place():
    link = builder.degraded().document.findings[1]

    assert [place.rank for place in link.places] == list(builder.SLOW_LINK)
    assert [place.host for place in link.places] == ["1", "2"]


def test_a_place_that_is_not_known_is_not_made_up():
    assert Place(3, None, None).text() == "rank 3"
    assert Place(3, None, 2).text() == "rank 3 = device 2"
    assert Place(3, "7", None).text() == "rank 3 = host 7"


def test_english_of_the_page_is_that_of_the_other_reports():
    result = builder.degraded()
    locate = locator(result, load_dictionary())

    for finding in result.document.findings:
        for place in finding.places:
            assert locate(place).en == place.text()
            assert locate(place).zh != place.text()


def test_commands_of_a_slow_device_name_it_and_one_without_a_device_gets_none():
    result = builder.degraded()
    finding = result.document.findings[0]
    texts = [one.text for one in commands.commands(finding, result)]
    unknown = replace(finding, places=(Place(builder.SLOW_RANK, None, None),))

    assert texts == ["npu-smi info -t common -i 5", "npu-smi info -t health -i 5"]
    assert commands.commands(unknown, result) == ()


def test_commands_of_a_link_ask_both_ends_and_test_between_them():
    result = builder.degraded()
    texts = [one.text for one in commands.commands(result.document.findings[1], result)]

    assert "hccn_tool -i 2 -link -g" in texts
    assert "all_reduce_test" in texts[-1]


def test_a_workload_finding_has_no_commands():
    result = builder.degraded()

    assert commands.commands(replace(result.document.findings[0], kind="data_imbalance"), result) == ()

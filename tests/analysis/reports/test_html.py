"""The colours of the stylesheet: every ink is read on every ground that it stands on."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cluster_analysis.findings_json import document_to_json
from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports.page.packing import pack
from cluster_words.pages import PAGE_STYLE
from tests.analysis.reports import builder
from tests.analysis.reports.pages import Elements, page_of, unpack
from tests.analysis.said import next_check, summary


def payload(page: bytes) -> str:
    return re.search(rb'id="payload">([^<]*)<', page).group(1).decode()


def shown(result) -> str:
    """What a reader of the page sees."""
    return Elements(page_of(result).decode()).text


@pytest.fixture(scope="module")
def page() -> bytes:
    return page_of(builder.degraded())


def test_payload_holds_findings_json_word_for_word(page):
    header, _ = unpack(payload(page))
    assert header["document"] == json.loads(document_to_json(builder.degraded().document))


def test_payload_holds_the_tables(page):
    result = builder.degraded()
    header, columns = unpack(payload(page))
    steps = result.tables["steps"].to_pylist()
    cells = columns["computing"].reshape(len(header["ranks"]), len(header["bins"]))
    for row in steps:
        cell = cells[header["ranks"].index(row["rank"]), header["bins"].index([row["step"]])]
        assert cell == pytest.approx(row["computing_us"], rel=1e-6)
    np.testing.assert_allclose(
        columns["link.gbps"], result.tables["links"]["bandwidth_gbps"].to_numpy(), rtol=1e-6
    )


def test_verdict_findings_and_next_check_are_read_without_a_script(page):
    text = Elements(page.decode()).text
    document = builder.degraded().document
    assert "A step takes 283 ms; 15.8 ms (5.6 %) of it is lost" in text
    for finding in document.findings:
        assert summary(finding) in text
        assert next_check(finding) in text


def test_a_finding_behind_a_costlier_one_shows_what_it_costs_after_that_one():
    first = builder.slow(cumulative_saving_ms=12.3)
    costs = {"cost_ms_per_step": 0.0, "cost_share": 0.0, "cost_high_ms": 7.7, "cumulative_saving_ms": 20.0}
    text = shown(builder.finds(first, builder.slow_link(**costs)))
    assert "up to 7.7 ms a step · up to 2.7 %" in text
    assert "20.0 ms together with those above" in text
    assert "costs nothing measurable" not in text


def test_a_finding_that_saves_nothing_even_then_costs_nothing_measurable():
    first = builder.slow()
    costs = {"cost_ms_per_step": 0.0, "cost_share": 0.0, "cumulative_saving_ms": first.cumulative_saving_ms}
    assert "costs nothing measurable" in shown(builder.finds(first, builder.slow_link(**costs)))


def test_below_the_mean_step_stands_the_blamed_rank_or_the_one_with_most():
    degraded, healthy = (Elements(page_of(one).decode()) for one in (builder.degraded(), builder.healthy()))
    assert f"rank {builder.SLOW_RANK}, which a finding below names" in degraded.text
    assert re.search(rf"rank {builder.SLOW_RANK}: \d", degraded.text)
    assert "the rank with most of it" in healthy.text
    assert re.search(r"rank \d+: [\d.]+ ms", healthy.text)


def test_the_first_screen_says_which_device_of_which_host_to_go_to():
    result = builder.degraded()
    unnamed = shown(result)
    named = shown(builder.with_addresses(result, {"1": "node01"}))
    assert "rank 5 = host 1 / device 5" in unnamed
    assert "npu-smi info -t common -i 5" in unnamed
    assert "rank 5 = node01 / device 5" in named
    assert "host_ips_mapping.txt" not in unnamed


def test_nothing_is_loaded_from_anywhere(page):
    elements = Elements(page.decode()).found
    addresses = [
        value for _, attributes in elements for name, value in attributes.items() if name in ("src", "href")
    ]
    assert [address for address in addresses if not address.startswith(("#", "data:,"))] == []
    policy = next(attributes["content"] for _, attributes in elements if attributes.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_names_that_try_to_be_markup_are_text():
    page = page_of(builder.with_hostile_names(builder.degraded())).decode()
    elements = Elements(page)
    assert [tag for tag, _ in elements.found if tag in ("img", "i") and "onerror" in _] == []
    assert sum(tag == "script" for tag, _ in elements.found) == sum(
        tag == "script" for tag, _ in Elements(page_of(builder.degraded()).decode()).found
    )
    assert "<script>alert(1)</script>" in elements.text
    assert "</script><b>x" in elements.text


def test_healthy_and_unknown_share_neither_sign_nor_words():
    pages = {
        name: page_of(make()).decode()
        for name, make in (("healthy", builder.healthy), ("unknown", builder.unknown))
    }
    assert 'class="verdict is-healthy"' in pages["healthy"]
    assert 'class="verdict is-unknown"' in pages["unknown"]
    assert "Healthy" not in Elements(pages["unknown"]).text
    assert "keep pace" not in Elements(pages["unknown"]).text
    assert "2 of 32 ranks can be compared" in Elements(pages["unknown"]).text


def test_a_healthy_page_that_lists_a_rank_does_not_say_that_no_rank_is_at_fault():
    result = builder.healthy()
    rank = builder.slow(severity="info")
    work = builder.slow(severity="info", kind="host_bound", ranks=())

    text = shown(builder.with_document(result, findings=(rank, work)))
    assert "What may cost time is below." in text
    assert "rank 5 may cost 12.3 ms of it: see below." in text
    assert "No rank or link is at fault." not in text
    assert "No rank or link is at fault." in shown(builder.with_document(result, findings=(work,)))


def test_addresses_stay_out_unless_they_may_be_shown():
    result = builder.degraded()
    named = builder.with_addresses(result, {"1": "node-secret-1"})
    assert b"node-secret" not in page_of(result)
    assert "rank 5 = node-secret-1 / device 5" in shown(named)


def test_a_result_without_tables_still_makes_a_page():
    result = builder.with_tables(builder.unknown(), {})
    assert "No step times were measured." in shown(result)


@pytest.mark.parametrize(
    ("dp", "pp", "most_mb"), [(32, 4, 6), pytest.param(160, 8, 25, marks=pytest.mark.slow)]
)
def test_a_thousand_ranks_stay_under_six_megabytes_and_ten_thousand_under_twenty_five(dp, pp, most_mb):
    result = builder.degraded(builder.Job(tp=8, dp=dp, pp=pp, n_steps=10))
    assert len(page_of(result)) < most_mb * 1_000_000


def test_a_baseline_shows_what_moved_and_what_was_refused():
    page = page_of(builder.degraded(), builder.comparison())
    header, _ = unpack(payload(page))
    text = Elements(page.decode()).text
    assert "The step takes 283 ms, before 268 ms: 5.5 % longer" in text
    assert "the runs have 64 and 32 ranks" in text
    assert [change["name"] for change in header["changes"]][:3] == ["step", "rank 5", "RDMA 2 to 10"]


def test_a_baseline_without_changes_says_so():
    page = page_of(builder.degraded(), Comparison((), ()))
    assert "Nothing moved beyond noise." in Elements(page.decode()).text


def test_licence_of_the_chart_library_is_in_the_page(page):
    assert b"Permission is hereby granted, free of charge" in page
    assert b"Leon Sorokin" in page


def test_a_finding_leads_to_its_page_of_the_documents(monkeypatch):
    monkeypatch.setenv("CLUSTER_PROFILER_DOCS_URL", "https://docs.example/")
    linked = page_of(builder.degraded()).decode()
    assert '<a href="https://docs.example/findings.html#slow_rank">' in linked
    monkeypatch.delenv("CLUSTER_PROFILER_DOCS_URL")
    page = page_of(builder.degraded()).decode()
    assert 'data-zh="docs/zh/findings.md#slow_rank">docs/findings.md#slow_rank</code>' in page


STYLES = PAGE_STYLE.read_text("utf-8")
INKS = ("ink", "muted", "degraded", "critical", "healthy", "unknown", "accent")
GROUNDS = ("paper", "surface", "sunken")
#: What a verdict says stands on its own tint.
TINTED = [(one, f"{one}-soft") for one in ("healthy", "degraded", "unknown")]


def colours(theme: str) -> dict[str, str]:
    ends = {"light": "", "dark": '[data-theme="dark"]', "dark without scripts": ":not([data-theme])"}
    start = STYLES.index(f":root{ends[theme]} {{")
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", STYLES[start : STYLES.index("}", start)]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_ink_can_be_read_on_every_ground(theme):
    found = colours(theme)
    pairs = [*((ink, ground) for ink in INKS for ground in GROUNDS), *TINTED]
    pairs += [(ink, soft) for ink in ("ink", "muted") for _, soft in TINTED]
    faint = {
        (ink, ground): round(contrast(found[ink], found[ground]), 2)
        for ink, ground in pairs
        if contrast(found[ink], found[ground]) < 4.5
    }
    assert faint == {}


def test_a_dark_page_has_the_same_colours_without_scripts():
    assert colours("dark without scripts").items() <= colours("dark").items()


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio of two #rrggbb colours."""

    def luminance(text: str) -> float:
        channels = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else math.pow((c + 0.055) / 1.055, 2.4) for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


COLUMNS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.one_of(
        hnp.arrays(np.float32, st.integers(0, 40)),
        hnp.arrays(np.int32, st.integers(0, 40)),
        hnp.arrays(np.uint8, st.integers(0, 40)),
    ),
    max_size=6,
)


@given(columns=COLUMNS, text=st.text(max_size=30))
def test_what_is_packed_comes_back(columns, text):
    header, read = unpack(pack({"text": text}, columns))
    assert header == {"text": text}
    assert list(read) == list(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(read[name], values)


def test_text_of_a_payload_cannot_end_its_element():
    assert "<" not in pack({"name": "</script><script>alert(1)</script>"}, {})


def test_an_unknown_type_is_refused_with_its_name():
    with pytest.raises(ValueError, match="column time has type float64"):
        pack({}, {"time": np.zeros(3)})


def test_a_nan_in_the_header_is_refused():
    with pytest.raises(ValueError, match="report header"):
        pack({"value": float("nan")}, {})

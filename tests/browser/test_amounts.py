"""Charts write a time as sentences do: the scripts of a page are no other hand than the words beside them."""

from importlib.resources import files

import pytest

from cluster_analysis.sentences.amounts import format_ms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

#: No value lies in the middle between two roundings.
TIMES_MS = [
    0.0, 0.0004, 0.0123, 0.9994, 0.9996, 1.0, 1.26, 9.94, 9.96, 78.93, 99.94, 99.96, 100.2, 123.4, 999.4,
    999.6, 1000.0, 1234.4, 9994.0, 9996.0, 10_000.0, 12_340.0, 987_654.0, -0.41, -12.34, -123.4, -1234.4,
]  # fmt: skip


def test_a_time_is_written_alike_in_a_chart_and_in_a_sentence(browser):
    script = files("cluster_analysis.reports").joinpath("assets/js/amounts.js").read_text("utf-8")
    page = browser.new_page()
    written = page.evaluate(f"(times) => {{ {script}\nreturn times.map(formatMs); }}", TIMES_MS)
    page.close()

    assert [one.replace("\u00a0", " ") for one in written] == [format_ms(one) for one in TIMES_MS]

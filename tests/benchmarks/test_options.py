"""What `python -m benchmarks.detection` is asked for, and what it says of classes that are not there."""

from __future__ import annotations

import pytest

from benchmarks.detection.__main__ import chosen, main, parser


def test_a_class_that_no_source_has_is_an_error_that_lists_the_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--model", "queues", "--class", "foo", "--healthy", "0"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "--class 'foo' is none of these: device and host; device, a third of the steps;" in said
    assert "slow_rank:1.05" not in said


def test_faults_are_counted_before_a_class_is_taken_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    options_of = parser(None)
    asked = ["--model", "streams", "--mode", "plain", "--healthy", "0", "--class", "link"]
    options = options_of.parse_args([*asked, "--faults", "44"])
    assert [fault_class for *_, fault_class in chosen(options, options_of)] == ["link", "link"]
    with pytest.raises(SystemExit):
        main([*asked, "--faults", "5"])
    assert "none of 5 --faults is of --class 'link': ask for more" in capsys.readouterr().err
    assert "with --class the others are left out" in " ".join(options_of.format_help().split())

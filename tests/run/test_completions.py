"""Completions of shells: as the parsers are now, and understood by bash."""

import pytest

from tests.commands import ran
from tools.renew_completions import PARSERS, completions


def test_completions_are_those_of_the_parsers():
    stale = [str(path) for path, text in completions() if path.read_text("utf-8") != text]

    assert stale == [], "make gold renews them"


@pytest.mark.parametrize("command", PARSERS)
def test_bash_completes_an_option(command):
    path = next(path for path, _ in completions() if path.name == command)
    script = f"""source {path}
        COMP_WORDS=({command} --vers) COMP_CWORD=1 COMP_LINE='{command} --vers' COMP_POINT=99
        $(complete -p {command} | sed 's/.*-F \\([^ ]*\\).*/\\1/') {command} --vers {command}
        echo "${{COMPREPLY[@]}}" """
    done = ran(["bash", "-c", script], check=True)

    assert "--version" in done.stdout.split()

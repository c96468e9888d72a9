import re
from typing import get_args

import pytest
from cluster_analysis.reports.retold import retell

from cluster_analysis.judge.cost.attribution import Blame, chain
from cluster_analysis.reports import words
from cluster_analysis.tables.model import GroupRole

DICTIONARY = words.load_dictionary()


@pytest.mark.parametrize("role", get_args(GroupRole))
@pytest.mark.parametrize("is_direct", [True, False])
@pytest.mark.parametrize("n_ranks", [1, 7])
@pytest.mark.parametrize("who", ["rank 13", "host 2", "this part of the network"])
def test_every_sentence_of_a_chain_is_told_in_chinese_with_its_numbers(role, is_direct, n_ranks, who):
    (sentence,) = chain(who, (Blame(role, is_direct, 9e6, n_ranks, 29, 78_300.0),))
    told = retell(sentence, DICTIONARY)

    assert told.en == sentence
    assert not re.search("[A-Za-z]{3}", told.zh)
    for number in (str(n_ranks), "29", "78.3 ms", *re.findall(r"\d+", who)):
        assert number in told.zh


def test_a_sentence_in_no_known_form_stays_as_it_is():
    told = retell("Nobody waits for rank 3.", DICTIONARY)

    assert told == words.Phrase("Nobody waits for rank 3.", "Nobody waits for rank 3.")

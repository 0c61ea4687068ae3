"""What training rows were like: words that a new row would lack, also where min_df left words out beforehand."""

from __future__ import annotations

import beamwood as bw


def test_words_of_few_rows_count_as_unknown_also_with_min_df() -> None:
    texts = [f"common word{number // 2}" for number in range(40)]  # every word but one is in exactly two rows
    labels = [[f"label{number % 4}"] for number in range(40)]
    for least in (1, 2):
        text = bw.TextFeatures(min_df=least)
        model = bw.train_text(texts, labels, text=text, preset="fast", progress=False)
        assert model.info()["baselines"]["unknown_terms"] == 0.5
    texts[0] = "common alone"
    model = bw.train_text(texts, labels, preset="fast", progress=False)
    assert 0 < model.info()["baselines"]["unknown_terms"] < 0.1

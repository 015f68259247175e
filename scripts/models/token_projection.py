#!/usr/bin/env python3
"""Computes `store/embedding/minilm/projection.f16`: 128 directions for the states of tokens.

    .venv/bin/python scripts/models/token_projection.py

Runs the packaged model on every fifth word of BERT's vocabulary, one word per run, and writes the
128 main directions of the resulting states as half floats. No text of any data set is used, so the
file can be shipped. It was compared on the development conversations, late interaction alone, R@10
/ nDCG@10: all 384 numbers .728 / .574; these 128 directions in 4 bits .731 / .566; directions from
groups of eight words .722 / .569; from our own documentation .714 / .561; random ones .718 / .560.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

EVERY = 5


def main() -> None:
    import numpy as np

    from store.embedding.minilm import model, tokens
    from store.embedding.minilm.wordpiece import WordPieces, load_vocabulary

    weights = model.installed_weights()
    if weights is None:
        sys.exit("the model's package is not installed")
    vocabulary = load_vocabulary()
    session, _keep = model._session(weights, model.SHA256)

    pieces, skipped = WordPieces(vocabulary), tokens.skipped_pieces(vocabulary)
    words = [word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2]
    rows: list[Any] = []
    for word in words[::EVERY]:
        ids = pieces.encode(word)
        places = np.arange(len(ids), dtype=np.int64)
        state = session.run(None, {"ids": np.array([ids], dtype=np.int64), "places": places})[0][0]
        state = state[tokens.content_places(ids, skipped)]
        rows.append(state / np.linalg.norm(state, axis=1, keepdims=True))
    states = np.concatenate(rows).astype(np.float64)
    _, directions = np.linalg.eigh(states.T @ states)
    chosen = directions[:, ::-1][:, : tokens.TOKEN_DIMS]
    path = ROOT / "store" / "embedding" / "minilm" / tokens.FILE
    path.write_bytes(np.ascontiguousarray(chosen, dtype="<f2").tobytes())
    print(f"{path.relative_to(ROOT)}: {len(states)} states of {len(words[::EVERY])} words")


if __name__ == "__main__":
    main()

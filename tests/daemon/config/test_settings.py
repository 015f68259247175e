"""Settings that must fit together."""

import pytest

from daemon.config import load
from daemon.exit_codes import CONFIG, Exit


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        ({"URL": "http://127.0.0.1/v1"}, "embedding.model: required"),
        ({"URL": "http://127.0.0.1/v1", "MODEL": "m"}, "embedding.dims: required"),
        ({"MODEL": "m"}, "embedding.model: of no use without embedding.url"),
        ({"KEY": "k"}, "embedding.key: of no use"),
        ({"FILE": "/m.onnx", "HASHED": "1"}, "embedding.file and embedding.hashed: choose one"),
    ],
)
def test_incomplete_or_conflicting_embedder_settings_are_rejected(
    embedding: dict[str, str], words: str
) -> None:
    with pytest.raises(Exit) as raised:
        load({}, {f"RECALLD_EMBEDDING_{name}": value for name, value in embedding.items()})
    assert raised.value.code == CONFIG and words in raised.value.message

"""The projection of vectors to the plane."""

import numpy as np
import pytest

from store.ranking.projection import project


def groups(count: int, each: int, dims: int = 64) -> np.ndarray:
    """Unit vectors around `count` different directions."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(count, dims))
    vectors = np.repeat(centres, each, axis=0) + 0.5 * random.normal(size=(count * each, dims))
    unit: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_most_neighbours_on_the_map_belong_to_the_same_group() -> None:
    count, each = 8, 40
    places = np.array(project(groups(count, each)))
    labels = np.repeat(np.arange(count), each)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :5]

    assert (labels[near] == labels[:, None]).mean() > 0.9


def test_the_same_vectors_give_the_same_places() -> None:
    vectors = groups(4, 25)
    assert project(vectors) == project(vectors.copy())


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_vectors_have_places_too(count: int) -> None:
    places = project(groups(4, 1)[:count])
    assert len(places) == count
    assert all(-1 <= x <= 1 and -1 <= y <= 1 for x, y in places)


def test_equal_vectors_have_finite_places() -> None:
    vectors = np.repeat(groups(1, 1), 10, axis=0)
    assert np.isfinite(np.array(project(vectors))).all()

"""The bank of a directory, compared with the answers of git."""

import os
import subprocess
from pathlib import Path

import pytest

from daemon.bridge.project_bank import bank_of, common_directory
from store.validate import bank_name


def git(place: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=m")
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=place,
        env={"PATH": os.environ["PATH"], "HOME": str(place), **quiet},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def repository(place: Path) -> Path:
    place.mkdir(parents=True)
    git(place, "init", "-q")
    git(place, "commit", "-q", "--allow-empty", "-m", "first")
    return place


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Every kind of repository: plain, bare, worktree, submodule, separate git directory."""
    main = repository(tmp_path / "one" / "app")
    deep = main / "src" / "deep"
    deep.mkdir(parents=True)
    worktree = tmp_path / "elsewhere" / "feature"
    git(main, "worktree", "add", "-q", str(worktree))
    nested = repository(main / "vendor" / "lib")
    other = repository(tmp_path / "two" / "app")
    module = tmp_path / "two" / "app" / "module"
    git(other, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(main), "module")
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    separate = tmp_path / "separate"
    git(tmp_path, "init", "-q", f"--separate-git-dir={tmp_path / 'kept.git'}", str(separate))
    link = tmp_path / "link"
    link.symlink_to(main)
    return {
        "main": main,
        "deep": deep,
        "worktree": worktree,
        "nested": nested,
        "other": other,
        "module": module,
        "bare": bare,
        "separate": separate,
        "link": link,
    }


def test_the_common_directory_is_the_one_that_git_prints(places: dict[str, Path]) -> None:
    for name, place in places.items():
        told = (place / git(place, "rev-parse", "--git-common-dir")).resolve()
        assert common_directory(place) == told, name


def test_worktrees_share_a_bank_and_projects_have_different_ones(places: dict[str, Path]) -> None:
    banks = {name: bank_of(place) for name, place in places.items()}

    assert banks["main"] == banks["deep"] == banks["worktree"] == banks["link"]
    apart = ["main", "nested", "other", "module", "bare", "separate"]
    assert len({banks[name] for name in apart}) == len(apart)


def test_a_bank_is_named_after_its_folder_and_a_digest(places: dict[str, Path]) -> None:
    for name, called in (("main", "app"), ("other", "app"), ("bare", "bare"), ("module", "module")):
        folder, _, digest = bank_of(places[name]).rpartition("@")
        assert folder == called
        assert len(digest) == 16 and int(digest, 16) >= 0


def test_outside_a_repository_the_directory_is_the_project(tmp_path: Path) -> None:
    plain = tmp_path / "notes"
    plain.mkdir()

    assert common_directory(plain) is None
    assert bank_of(plain).startswith("notes@")
    assert bank_of(plain) != bank_of(tmp_path)


@pytest.mark.parametrize(
    "name", ["with\nbreak", "tab\there", "é" * 200, b"\xff\xfe".decode("latin1"), "a'b\"c"]
)
def test_every_folder_name_gives_a_valid_bank_name(tmp_path: Path, name: str) -> None:
    place = tmp_path / name[:80]
    place.mkdir()

    assert bank_name(bank_of(place)) == bank_of(place)


def test_a_folder_name_that_is_not_utf8_gives_a_valid_bank_name(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    place.mkdir()

    assert bank_name(bank_of(place))
    assert bank_name(bank_of(Path("/"))).startswith("root@")


@pytest.mark.parametrize("content", ["", "gitdir: nowhere", "gitdir:", "\x00\xff", "nonsense"])
def test_a_malformed_git_file_is_not_a_repository(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)

    assert common_directory(tmp_path) in (None, common_directory(tmp_path.parent))
    assert bank_of(tmp_path).startswith(f"{tmp_path.name}@")

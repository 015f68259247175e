"""Rules that leave files out: ignore files, patterns of the definition, and built-in exclusions.

`.gitignore`, `.ignore` and `.recalldignore` apply to their folder and everything below it, with
git's syntax; a later rule overrides an earlier one. Built-in exclusions (version control, packages,
build output, lock files, keys) cannot be negated, except by an `include` pattern of the definition
that names the file without wildcards.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES: Final = (".gitignore", ".ignore", ".recalldignore")

#: Folders that hold no documents of the user, and files that no search should find.
ALWAYS_EXCLUDED: Final = (
    ".git/", ".hg/", ".svn/", ".jj/", "node_modules/", "bower_components/", "target/", "dist/",
    "__pycache__/", ".venv/", "venv/", ".env/", ".tox/", ".nox/", ".mypy_cache/", ".ruff_cache/",
    ".pytest_cache/", ".gradle/", ".terraform/", ".cache/", ".direnv/", "*.egg-info/",
    "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "Cargo.lock", "poetry.lock", "uv.lock",
    "Pipfile.lock", "composer.lock", "Gemfile.lock", "go.sum", "*.min.js", "*.min.css", "*.map",
    ".DS_Store", "*~", ".*.sw[a-p]", ".#*", "*.tmp",
)  # fmt: skip

#: Files that usually hold secrets. They are counted under this reason, unlike other exclusions.
SECRET: Final = (
    ".env*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*",
    "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.asc", "*.gpg", ".netrc", ".npmrc", ".pypirc",
    ".htpasswd", "credentials", "credentials.json", "secrets.*", "*.tfstate*", ".pgpass",
)  # fmt: skip


class Rules:
    """The built-in rules and those of one definition."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include = specification(tuple(include)) if include else None
        self._exclude = specification(tuple(exclude)) if exclude else None
        self._named = frozenset(include)

    def is_folder_excluded(self, path: str) -> bool:
        """Whether nothing below this folder is wanted."""
        folder = f"{path}/"
        if self._exclude is not None and self._exclude.match_file(folder):
            return True
        return specification(ALWAYS_EXCLUDED).match_file(folder)

    def reason(self, path: str) -> str | None:
        """The reason for which a file is left out: `excluded` or `secret`; None if it is wanted."""
        if path in self._named:
            return None
        if self._exclude is not None and self._exclude.match_file(path):
            return "excluded"
        if specification(SECRET).match_file(path):
            return "secret"
        if specification(ALWAYS_EXCLUDED).match_file(path):
            return "excluded"
        if self._include is not None and not self._include.match_file(path):
            return "excluded"
        return None

    @property
    def has_include(self) -> bool:
        return self._include is not None


class IgnoreFiles:
    """The ignore files on the way from the root to a folder."""

    def __init__(self, layers: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()) -> None:
        self._layers = layers

    def below(self, folder: str, contents: Iterable[str]) -> "IgnoreFiles":
        """The same with the ignore files of a folder added; the root folder is ""."""
        prefix = f"{folder}/" if folder else ""
        added = tuple((prefix, specification(tuple(text.splitlines()))) for text in contents)
        return IgnoreFiles((*self._layers, *added)) if added else self

    def is_ignored(self, path: str) -> bool:
        """Whether the last matching rule ignores the path; a folder ends in a slash."""
        for prefix, spec in reversed(self._layers):
            if path.startswith(prefix):
                decided = spec.check_file(path[len(prefix) :]).include
                if decided is not None:
                    return decided
        return False


@lru_cache(maxsize=1024)
def specification(patterns: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)

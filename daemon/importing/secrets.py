"""Detection of secrets in foreign texts: keys and tokens by their form, passwords by their label.

Each pattern has a fixed prefix or label, so ordinary text is passed over quickly. A pattern can
miss a secret without a known form, and can take a random word for one: the report therefore names
every entry concerned, and never shows the secret itself.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, cast

Policy = Literal["skip", "redact", "keep"]
POLICIES: Final[tuple[Policy, ...]] = ("skip", "redact", "keep")

LABELLED: Final = "labelled secret"

#: Every secret with a known form contains one of these, and every labelled one a label. Looking for
#: them takes a small part of the time that the patterns take.
_MARKS: Final = (
    "AKIA", "ASIA", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "sk-",
    "k_live_", "k_test_", "AIza", "eyJ", "-----BEGIN", "npm_", "pypi-", "hf_", "SG.", "ya29.", "://",
)  # fmt: skip
_LABELS: Final = ("passw", "pwd", "secret", "token", "key", "bearer")

_PATTERNS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("private key", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s:,.-]*")),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(r"\bgh[opsur]_[0-9A-Za-z]{36,255}")),
    ("GitHub token", re.compile(r"\bgithub_pat_[0-9A-Za-z_]{40,255}")),
    ("GitLab token", re.compile(r"\bglpat-[0-9A-Za-z_-]{20,64}")),
    ("Slack token", re.compile(r"\bxox[abeoprs]-[0-9A-Za-z-]{10,255}")),
    ("Anthropic key", re.compile(r"\bsk-ant-[0-9A-Za-z_-]{20,255}")),
    ("OpenAI key", re.compile(r"\bsk-(?:proj-|svcacct-)?[0-9A-Za-z_-]{32,255}")),
    ("Stripe key", re.compile(r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,255}")),
    ("Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("Google token", re.compile(r"\bya29\.[0-9A-Za-z_-]{20,255}")),
    ("npm token", re.compile(r"\bnpm_[0-9A-Za-z]{36}\b")),
    ("PyPI token", re.compile(r"\bpypi-[0-9A-Za-z_-]{40,255}")),
    ("Hugging Face token", re.compile(r"\bhf_[0-9A-Za-z]{30,64}\b")),
    ("SendGrid key", re.compile(r"\bSG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{32,64}")),
    (
        "JSON web token",
        re.compile(r"\beyJ[0-9A-Za-z_-]{8,4096}\.eyJ[0-9A-Za-z_-]{8,8192}\.[0-9A-Za-z_-]{8,1024}"),
    ),
    ("password in a URL", re.compile(r"://[^\s:/@]{1,64}:(?P<secret>[^\s:/@]{3,128})@")),
    (
        LABELLED,
        re.compile(
            r"(?i:\b(?:password|passwd|pwd|secret|client[_-]secret|api[_ -]?key|access[_-]?token|"
            r"auth[_-]?token|bearer)\b)[\"']?[ \t]{0,4}(?:[:=]|is)?[ \t]{0,4}"
            r"(?P<secret>[\"'][^\"'\s]{6,256}[\"']|[^\s\"',;]{8,256})"
        ),
    ),
)  # fmt: skip


class Secret(NamedTuple):
    """A secret in a text: its sort and its place."""

    name: str
    start: int
    end: int


def secrets_in(text: str) -> list[Secret]:
    """The secrets of a text, in no particular order; places may overlap."""
    has_mark = _has_any(text, _MARKS)
    has_label = _has_any(text.lower(), _LABELS)
    if not has_mark and not has_label:
        return []
    found: list[Secret] = []
    for name, pattern in _PATTERNS:
        if not (has_label if name == LABELLED else has_mark):
            continue
        for match in pattern.finditer(text):
            group = "secret" if "secret" in pattern.groupindex else 0
            start, end = match.span(group)
            if name != LABELLED or _is_random(match[group].strip("\"'")):
                found.append(Secret(name, start, end))
    return found


def _has_any(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110  (any() with a generator takes twice as long)
        if word in text:
            return True
    return False


def redacted(text: str) -> str:
    """The text with each secret replaced by its sort."""
    kept: list[str] = []
    end = 0
    for secret in sorted(secrets_in(text), key=lambda each: each.start):
        if secret.start < end:
            end = max(end, secret.end)
            continue
        kept += (text[end : secret.start], f"[redacted: {secret.name}]")
        end = secret.end
    return "".join((*kept, text[end:]))


def redacted_value(value: Any) -> Any:
    """The same JSON value with every text redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {name: redacted_value(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [redacted_value(member) for member in cast("list[Any]", value)]
    return value


def names_in_value(value: Any) -> set[str]:
    """The sorts of secrets in the texts of a JSON value."""
    if isinstance(value, str):
        return {secret.name for secret in secrets_in(value)}
    if isinstance(value, Mapping):
        members: Any = cast("Mapping[str, Any]", value).values()
    elif isinstance(value, list | tuple):
        members = cast("list[Any]", value)
    else:
        return set()
    found: set[str] = set()
    for member in members:
        found |= names_in_value(member)
    return found


def _is_random(word: str) -> bool:
    """Whether a labelled word looks like a password rather than a word of a sentence."""
    sorts = (
        any(character.islower() for character in word),
        any(character.isupper() for character in word),
        any(character.isdigit() for character in word),
        any(not character.isalnum() and character not in "-_/.:" for character in word),
    )
    return sum(sorts) >= 3 or (sorts[2] and sum(sorts) >= 2 and len(word) >= 12)

"""Secrets are recognised by form or label; ordinary sentences are not."""

import pytest

from daemon.importing.secrets import names_in_value, redacted, redacted_value, secrets_in

#: Each is invented. They are put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "AWS access key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitLab token": "glpat-" + "a1B2" * 5,
    "Slack token": "xoxb-" + "1234567890-abcdef",
    "Anthropic key": "sk-ant-" + "a1B2" * 8,
    "OpenAI key": "sk-proj-" + "a1B2" * 10,
    "Stripe key": "sk_live_" + "a1B2" * 5,
    "Google key": "AIza" + "a1B2c" * 7,
    "npm token": "npm_" + "a1B2" * 9,
    "JSON web token": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxIn0aa" + ".c2lnbmF0dXJl",
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\n-----END",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_by_its_form_and_redacted(name: str) -> None:
    text = f"use {SECRETS[name]}"
    assert name in {secret.name for secret in secrets_in(text)}
    assert SECRETS[name].split("\n")[0] not in redacted(text)
    assert redacted(text).startswith("use [redacted: ")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("the password is Tr0ub4dor&3 now", "the password is [redacted: labelled secret] now"),
        ('api_key = "a1b2c3d4e5f6"', "api_key = [redacted: labelled secret]"),
        ("postgres://ana:hunter22@db/x", "postgres://ana:[redacted: password in a URL]@db/x"),
    ],
)
def test_a_labelled_secret_is_redacted_and_its_label_kept(text: str, after: str) -> None:
    assert redacted(text) == after


@pytest.mark.parametrize(
    "text",
    [
        "the password is required for everyone",
        "We rotate the secret every month",
        "bearer tokens are stored as hashes",
        "see https://example.com/a:b and task-force sk-etch",
        "Ana prefers tabs",
    ],
)
def test_an_ordinary_sentence_has_no_secret(text: str) -> None:
    assert secrets_in(text) == []
    assert redacted(text) == text


def test_secrets_inside_metadata_are_found_and_redacted() -> None:
    key = SECRETS["AWS access key"]
    value = {"env": [{"key": key}], "count": 3}
    assert names_in_value(value) == {"AWS access key"}
    assert redacted_value(value) == {"env": [{"key": "[redacted: AWS access key]"}], "count": 3}

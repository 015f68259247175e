"""The static files of the web UI, with their media types and security headers.

The page has one origin and loads nothing from elsewhere. The policy allows scripts and styles from
this origin only, as files: no inline script, no inline style, no frame, no form. `Trusted Types`
make the browser refuse every text that would be parsed as HTML, so stored text stays text even if
a component is wrong.
"""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "static"
PAGE: Final = "index.html"

POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    b" img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
    b" require-trusted-types-for 'script'; trusted-types 'none'"
)
#: Headers of every page: the policy, and no ties to other windows and sites.
ISOLATION: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}

Headers = list[tuple[bytes, bytes]]


def load(folder: Path = FOLDER) -> dict[str, tuple[bytes, Headers]]:
    """All files by name, each with its headers. Other files, such as licences, are not served."""
    return {
        path.name: (path.read_bytes(), [(b"content-type", TYPES[path.suffix]), *page_headers()])
        for path in sorted(folder.iterdir())
        if path.suffix in TYPES
    }


def page_headers(policy: bytes = POLICY) -> Headers:
    return [(b"content-security-policy", policy), *ISOLATION]


def docs_style() -> str:
    """The style sheet of `/docs`, which is part of that page."""
    return FOLDER.with_name("docs.css").read_text()

"""Flaws of a server over HTTP; conformance/broken/web.py looks each up at one place."""

from __future__ import annotations

from conformance import revisions
from conformance.broken.flaw import quirk

D = revisions.D
E = revisions.E

for name, cases, about, revision in (
    ("http-origin", "H02a", "any page may ask", None),
    ("http-null", "H02b", "a page without an origin may ask", None),
    ("http-get-origin", "H02c", "any page may open the stream", None),
    ("http-delete-origin", "H02d", "any page may end a session", None),
    ("http-no-origin", "H03", "not even a local page may ask", None),
    ("http-host", "H04", "any name is taken for its own", None),
    ("http-html", "H07", "answers are called HTML", None),
    ("http-accept", "H08", "what the client accepts does not matter", None),
    ("http-type", "H09", "any content type is taken for JSON", None),
    ("http-notes-200", "H10", "a notification is answered", None),
    ("http-malformed", "H12", "what is no JSON is answered with 200", None),
    ("http-odd-version", "H13", "any version header is fine", D),
    ("http-need-version", "H14", "a session does not know its own version", D),
    ("http-no-version", "H15", "the version header may be missing", E),
    ("http-any-version", "H16", "the version header may say anything", E),
    ("http-no-method", "H17a", "the method header may be missing", E),
    ("http-any-method", "H17b", "the method header may say anything", E),
    ("http-method-case", "H17c", "the method header is compared without case", E),
    ("http-no-name", "H18a", "the name header may be missing", E),
    ("http-any-name", "H18b", "the name header may say anything", E),
    ("http-plain-name", "H19a", "base64 in the name header is not understood", E),
    ("http-bad-base64", "H19b", "broken base64 in the name header is let pass", E),
    ("http-strict-case", "H20", "header names are compared with their case", E),
    ("http-not-404", "H23", "an unknown method is answered with 200", E),
    ("http-meta", "H24", "missing _meta is answered with 200", E),
    ("http-get", "H25a", "GET is answered in the modern era", E),
    ("http-delete", "H25b", "DELETE is answered in the modern era", E),
    ("http-minting", "H26", "a modern client is given a session", E),
    ("http-crossed", "H34", "answers go to whoever asked first", E),
    ("http-put", "H38", "PUT is accepted", None),
    ("http-same-handle", "S01", "every client gets the same session", D),
    ("http-missing-404", "S02a", "a missing session is answered like an unknown one", D),
    ("http-any-session", "S02b S02d", "an unknown session is served", D),
    ("http-get-any", "S02c", "the stream of an unknown session is opened", D),
    ("http-undying", "S03", "an ended session lives on", D),
    ("http-shared", "S04", "sessions are not told apart", D),
    ("http-early-session", "S14", "a failed handshake leaves a session", D),
):
    quirks = {name.replace("-", "_"): True}
    if name == "http-get-any":
        quirks = {"http_get": True, "http_any_session": True}
    if name == "http-shared":
        quirks = {"http_same_handle": True}
    quirk(name, cases, about, revision=revision, **quirks)

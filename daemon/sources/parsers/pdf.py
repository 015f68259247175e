"""PDF as text, with pypdf. It runs in the child process only: some files take gigabytes."""

import io
import logging
from typing import Final

from daemon.sources.parsers.parsed import LARGEST_TEXT, Parsed, Unparsable

MOST_PAGES: Final = 5_000


def parse_pdf(content: bytes) -> Parsed:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.disable(logging.CRITICAL)  # pypdf logs every irregularity of a file
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unparsable("is encrypted")
        if len(reader.pages) > MOST_PAGES:
            raise Unparsable(f"has more than {MOST_PAGES} pages")
        parts: list[str] = []
        size = 0
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text().strip()
            size += len(text)
            if size > LARGEST_TEXT:
                raise Unparsable(f"has more than {LARGEST_TEXT} bytes of text")
            if text:
                parts.append(f"# Page {number}\n\n{text}")
        title = str((reader.metadata.title if reader.metadata else "") or "").strip()[:300]
    except (Unparsable, MemoryError):
        raise
    except (PyPdfError, RecursionError) as error:
        raise Unparsable(f"is not a valid PDF ({type(error).__name__})") from None
    except Exception as error:  # noqa: BLE001  (damaged files make pypdf raise almost anything)
        raise Unparsable(f"cannot be read as PDF ({type(error).__name__})") from None
    if not parts:
        raise Unparsable("has no text; it may be a scan")
    return Parsed(text="\n\n".join(parts) + "\n", title=title)

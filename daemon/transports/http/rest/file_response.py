"""A response whose body is a temporary file, which is deleted afterwards."""

import shutil
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from daemon.api.bulk import ExportFile
from daemon.transports.http.edge.messages import PLAIN, Send

_CHUNK_BYTES: Final = 256 * 1024


async def send_file(send: Send, file: ExportFile) -> None:
    """Send a file of an export as an attachment, and delete it with its directory."""
    path = Path(file.path)
    try:
        async with await anyio.open_file(path, "rb") as content:
            headers = [
                *PLAIN,
                (b"content-type", file.type.encode()),
                (b"content-length", b"%d" % (await anyio.Path(path).stat()).st_size),
                (b"content-disposition", f'attachment; filename="{file.name}"'.encode()),
                (b"content-security-policy", b"default-src 'none'; sandbox"),
            ]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while chunk := await content.read(_CHUNK_BYTES):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
    finally:
        with anyio.CancelScope(shield=True):
            remove = partial(shutil.rmtree, path.parent, ignore_errors=True)
            await anyio.to_thread.run_sync(remove)

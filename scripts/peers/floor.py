"""Lower bound for an echo server: a loop that parses each line and answers it.

It has no validation, lifecycle or concurrency, so it measures the cost of pipes, interpreter and
JSON codec alone. No real server in Python can be faster.
"""

import os

import msgspec

INITIALIZED = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"floor","version":"1"}}}\n'
)
TOOLS = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"tools":[{"name":"echo","description":"Returns the text.",'
    b'"inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}}\n'
)
ECHOED = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}]}}\n'


class Arguments(msgspec.Struct, frozen=True):
    text: msgspec.Raw = msgspec.Raw(b'""')


class Params(msgspec.Struct, frozen=True):
    name: str = ""
    arguments: Arguments = Arguments()


class Message(msgspec.Struct, frozen=True):
    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    params: Params = Params()


def main() -> None:
    decode = msgspec.json.Decoder(Message).decode
    rest = b""
    while chunk := os.read(0, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        answers = []
        for line in lines:
            message = decode(line)
            identity = bytes(message.id)
            if message.method == "tools/call":
                answers.append(ECHOED % (identity, bytes(message.params.arguments.text)))
            elif message.method == "initialize":
                answers.append(INITIALIZED % identity)
            elif message.method == "tools/list":
                answers.append(TOOLS % identity)
        out = b"".join(answers)
        while out:
            out = out[os.write(1, out) :]


if __name__ == "__main__":
    main()

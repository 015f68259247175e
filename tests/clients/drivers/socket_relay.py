"""Relay stdin and stdout to a Unix socket, for clients that can only start a command.

Usage: `socket_relay.py SOCKET`.
"""

import os
import socket
import sys
import threading


def main() -> None:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.connect(sys.argv[1])

    def back() -> None:
        while chunk := peer.recv(1 << 16):
            while chunk:
                chunk = chunk[os.write(1, chunk) :]

    reader = threading.Thread(target=back)
    reader.start()
    while chunk := os.read(0, 1 << 16):
        peer.sendall(chunk)
    peer.shutdown(socket.SHUT_WR)
    reader.join()


if __name__ == "__main__":
    main()

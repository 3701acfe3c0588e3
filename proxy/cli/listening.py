"""The address the proxy listens on, bound before any worker exists (contract C1).

In: host and port. Out: a bound socket that does not listen yet (its worker does, when it is ready), or a `ListenError`
that says what is in the way. Never: take a port that another program, another Sluice included, has.
"""

from __future__ import annotations

import errno
import os
import socket

from proxy.errors import SluiceError


class ListenError(SluiceError):
    """The address cannot be had."""


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Binds one address. `shared` sockets can be joined by others of this user through `join`."""
    family, address = _resolve(host, port)
    try:
        if shared and port:
            # SO_REUSEPORT would let two proxies share a port, each unknown to the other; without it this one fails.
            _bound(family, address, shared=False).close()
        return _bound(family, address, shared=shared)
    except OSError as problem:
        raise ListenError(f"cannot listen on {host} port {port}: {_reason(problem)}") from problem


def join(sock: socket.socket) -> socket.socket:
    """Another socket on the address of a shared one: the kernel spreads connections over those that listen."""
    return _bound(sock.family, sock.getsockname(), shared=True)


def url_of(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if sock.family == socket.AF_INET6 else f"http://{host}:{port}"


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        raise ListenError(f"cannot listen on {host} port {port}: the host name is not known") from problem
    family, _, _, _, address = found[0]
    return family, address


def _bound(family: socket.AddressFamily, address: tuple[object, ...], *, shared: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _reason(problem: OSError) -> str:
    match problem.errno:
        case errno.EADDRINUSE:
            return "the port is in use"
        case errno.EACCES:
            return "this user may not use the port"
        case errno.EADDRNOTAVAIL:
            return "this host does not have that address"
        case code:
            return os.strerror(code) if code else str(problem)

"""Servers on this machine that speak TLS."""

import contextlib
import ssl

from fake_server import FakeServer


@contextlib.contextmanager
def tls_server(certificate, answers=("over TLS",), faults=()):
    server = FakeServer(answers, faults)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    with server:
        yield server


@contextlib.contextmanager
def demanding_server(certificate, answers=("over TLS",)):
    """Yield a server that wants a certificate of its client, signed by the same authority."""
    server = FakeServer(answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True, do_handshake_on_connect=False)
    with server:
        yield server

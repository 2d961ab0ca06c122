"""The certificates of a connection: the authorities that are trusted, and the client's own."""

import os
from pathlib import Path
from typing import Any

from code_commit.errors import NotSetUpError

Certificate = tuple[Path, Path | None]  # the client's certificate and its key, which may be in one file


def tls_context(base_url: str, certificate: Certificate | None = None) -> Any:
    """Return the TLS context of SSL_CERT_FILE or SSL_CERT_DIR, the system's or certifi's. Raises NotSetUpError.

    Reading a file of all authorities is slow. Plain http gets none, and the system's hashed folder is read as needed.
    """
    import ssl

    import httpx

    if base_url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file, folder = os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None
    hashed_folder = ssl.get_default_verify_paths().openssl_capath
    if not file and not folder and any(Path(hashed_folder).glob("*.0")):
        folder = hashed_folder
    try:
        if not file and not folder:
            return _with_certificate(httpx.create_ssl_context(trust_env=False), certificate)
        context = ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:
        raise NotSetUpError(
            f"the certificate authorities cannot be read: {error}; check SSL_CERT_FILE and SSL_CERT_DIR"
        ) from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it: many a company's authority fails it
    return _with_certificate(context, certificate)


def require_certificate(certificate: Certificate) -> None:
    """Raise NotSetUpError if the client's certificate or its key cannot be used."""
    import ssl

    _with_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)


def _with_certificate(context: Any, certificate: Certificate | None) -> Any:
    """Return the context with the client's certificate. Raises NotSetUpError where that cannot be used."""
    if certificate:
        try:
            context.load_cert_chain(*certificate, password="")  # OpenSSL would ask on the terminal
        except OSError as error:
            why = (
                error.strerror if error.errno and not hasattr(error, "reason") else "it is not PEM or has a pass phrase"
            )
            way = "name a certificate and its key without a pass phrase, as PEM"
            if certificate[1] is None:
                why, way = f"{why}, or holds no key", f"{way}: both in one file, or the key by client_key"
            names = "client_cert" if certificate[1] is None else "client_cert and client_key"
            raise NotSetUpError(f"{names} cannot be used ({why}): {way}") from None
    return context

"""The certificates of a connection: the authorities that are trusted, and the client's own."""

import os
from pathlib import Path
from typing import Any

from code_commit.errors import NotSetUpError
from code_commit.terminal import shown

Certificate = tuple[Path, Path | None]  # the client's certificate and its key, which may be in one file
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # what names authorities in place of the system's


def tls_context(base_url: str, certificate: Certificate | None = None) -> Any:
    """Return the TLS context of SSL_CERT_FILE or SSL_CERT_DIR, the system's or certifi's. Raises NotSetUpError.

    Reading a file of all authorities is slow. Plain http gets none, and the system's hashed folder is read as needed.
    """
    import ssl

    import httpx

    if base_url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    hashed_folder, named = ssl.get_default_verify_paths().openssl_capath, any(map(os.environ.get, VARIABLES))
    if not named and not any(Path(hashed_folder).glob("*.0")):
        context = httpx.create_ssl_context(trust_env=False)
    else:
        context = _named_authorities() if named else ssl.create_default_context(capath=hashed_folder)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it: many a company's authority fails it
    return _with_certificate(context, certificate)


def require_authorities() -> str:
    """Return the variables that name authorities, "" where none does. Raises NotSetUpError if these cannot be read."""
    names = [name for name in VARIABLES if os.environ.get(name)]
    if names:
        _named_authorities()
    return " and ".join(names)


def _named_authorities() -> Any:
    """Return a context that trusts the authorities which the variables name. Raises NotSetUpError."""
    import ssl

    file, folder = (os.environ.get(name) or None for name in VARIABLES)
    if folder and not any(Path(each).is_dir() for each in folder.split(os.pathsep)):  # OpenSSL passes over them
        told = f"SSL_CERT_DIR names {shown(folder)}, which is not a folder"
        raise NotSetUpError(f"{told}: name a folder of certificates that openssl rehash has prepared, or unset it")
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:
        why = "it contains no PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
        told = f"SSL_CERT_FILE names {shown(file or '')}, which cannot be read ({why})"
        raise NotSetUpError(f"{told}: name a PEM file of certificate authorities, or unset it") from error


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
                error.strerror
                if error.errno and not hasattr(error, "reason")
                else "it is not PEM, or it has a passphrase"
            )
            way = "name a PEM certificate and its key, without a passphrase"
            if certificate[1] is None:
                why, way = f"{why}, or it contains no key", f"{way} (both in one file, or the key with client_key)"
            names = "client_cert" if certificate[1] is None else "client_cert and client_key"
            raise NotSetUpError(f"{names} cannot be used ({why}): {way}") from None
    return context

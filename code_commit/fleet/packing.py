"""Log folders as compressed archives: a worker packs one, the client and the next worker unpack it."""

import gzip
import io
import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from code_commit.files import identity_of


def packed(
    folders: Mapping[str, Path],
    contents: Mapping[str, bytes] | None = None,
    kept: dict[str, tuple[tuple[int, ...], bytes]] | None = None,
) -> bytes:
    """Return the files of folders as a compressed tar archive, each below its name in it. Raises OSError.

    `contents` come first, in place of the files of that name. `kept` has the parts of an earlier archive with the
    versions of their files: only what grew is compressed.
    """
    contents, kept = contents or {}, {} if kept is None else kept
    parts = [_packed_file(name, content) for name, content in contents.items()]
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            member = str(Path(name, path.relative_to(folder)))
            if path.is_file() and not path.is_symlink() and member not in contents:
                version, (known, part) = identity_of(path.stat()), kept.get(member, ((), b""))
                if version != known:
                    kept[member] = version, (part := _packed_file(member, path.read_bytes()))
                parts.append(part)
    return b"".join([*parts, gzip.compress(bytes(2 * tarfile.BLOCKSIZE), 1)])


def _packed_file(name: str, content: bytes) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return gzip.compress(b"".join([member.tobuf(), content, bytes(-len(content) % tarfile.BLOCKSIZE)]), 1)


def unpack(archive: bytes, folder: Path) -> None:
    """Write the regular files of an archive; what is none, or would lie outside the folder, is left out."""
    folder.mkdir(mode=0o700)
    if not archive:
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = folder / member.name
            if not member.isreg() or not path.is_relative_to(folder) or ".." in path.parts:
                continue
            for parent in reversed(path.relative_to(folder).parents):
                (folder / parent).mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(file, "wb") as copy, tar.extractfile(member) or io.BytesIO() as content:  # noqa: PTH123
                shutil.copyfileobj(content, copy)

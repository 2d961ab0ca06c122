"""Projects of a few files, as the parser asks about them."""


class Files(dict[str, str]):
    """A project of these files, as the parser asks about it."""

    def __init__(self, *paths: str, **contents: str) -> None:
        super().__init__(dict.fromkeys(paths, "") | contents)

    def has(self, path: str) -> bool:
        return path in self or self.has_folder(path)

    def has_folder(self, path: str) -> bool:
        return any(each.startswith(f"{path}/") for each in self)

    def has_line(self, path: str, line: str) -> bool:
        return line in self.get(path, "").split("\n")

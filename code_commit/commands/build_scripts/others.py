"""Kinds whose own tool knows what to build and to test."""

import re
import shlex
from pathlib import Path

from code_commit.commands.build_scripts.kind import Kind, first_file, install_once, members, read_object, read_text
from code_commit.terminal import shown

_SIMPLE: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Rust", ("Cargo.toml",), ("cargo test --workspace",)),
    ("Elixir", ("mix.exs",), (install_once("deps", "mix deps.get"), "mix test")),
    ("Swift", ("Package.swift",), ("swift build", "swift test")),
    ("Zig", ("build.zig",), ("zig build", "zig build test")),
    ("Haskell", ("stack.yaml",), ("stack test",)),
    ("Haskell", ("cabal.project", "*.cabal"), ("cabal build all", "cabal test all")),
    ("OCaml", ("dune-project",), ("dune build", "dune runtest")),
    ("Scala", ("build.sbt",), ("sbt test",)),
    ("Bazel", ("MODULE.bazel", "WORKSPACE.bazel", "WORKSPACE"), ("bazel build //...", "bazel test //...")),
)


def find_simple(folder: Path) -> list[Kind]:
    found: dict[str, Kind] = {}
    for name, files, lines in _SIMPLE:
        evidence = first_file(folder, files)
        if evidence is not None:
            found.setdefault(name, Kind(name, evidence, lines))
    return list(found.values())


def find_go(folder: Path) -> Kind | None:
    if (folder / "go.work").is_file():
        modules = "go list -m -f '{{.Dir}}/...'"
        return Kind("Go", "go.work", (f"{modules} | xargs go build", f"{modules} | xargs go test"))
    if (folder / "go.mod").is_file():
        return Kind("Go", "go.mod", ("go build ./...", "go test ./..."))
    return None


def find_maven(folder: Path) -> Kind | None:
    if not (folder / "pom.xml").is_file():
        return None
    tool = "sh ./mvnw" if (folder / "mvnw").is_file() else "mvn"
    return Kind("Maven", "pom.xml", (f"{tool} --batch-mode --no-transfer-progress verify",))


def find_gradle(folder: Path) -> Kind | None:
    evidence = first_file(folder, ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"])
    if evidence is None:
        return None
    tool = "sh ./gradlew" if (folder / "gradlew").is_file() else "gradle"
    return Kind("Gradle", evidence, (f"{tool} --no-daemon --console=plain build",))


def find_dotnet(folder: Path) -> Kind | None:
    """A solution, else every project file of the folder."""
    solution = first_file(folder, ["*.slnx", "*.sln"])
    patterns = ("*.csproj", "*.fsproj", "*.vbproj")
    projects = [path.name for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]
    targets = [solution] if solution else projects
    if not targets:
        return None
    return Kind(".NET", targets[0], tuple(f"dotnet test {shlex.quote('./' + target)}" for target in targets))


def find_ruby(folder: Path) -> Kind | None:
    evidence = first_file(folder, ["Gemfile", "Rakefile", "*.gemspec"])
    if evidence is None:
        return None
    has_gemfile = (folder / "Gemfile").is_file()
    prefix = "bundle exec " if has_gemfile else ""
    install = ("bundle check || bundle install",) if has_gemfile else ()
    return Kind("Ruby", evidence, (*install, *_ruby_commands(folder, prefix)))


def _ruby_commands(folder: Path, prefix: str) -> tuple[str, ...]:
    if (folder / "bin" / "rails").is_file() and (folder / "test").is_dir():
        return ("bin/rails test",)
    if (folder / "spec").is_dir() or (folder / ".rspec").is_file():
        return (f"{prefix}rspec",)
    if (folder / "Rakefile").is_file():
        has_test = re.search(r"TestTask|task[ (]*:?[\"']?test\b", read_text(folder / "Rakefile"))
        return (f"{prefix}rake{' test' if has_test else ''}",)
    if (folder / "test").is_dir():
        return (prefix + """ruby -Itest -Ilib -e 'Dir["./test/**/*_test.rb"].sort.each { |file| require file }'""",)
    return (
        "# No tests were found: this says only whether the files are valid Ruby.",
        "find . -name '*.rb' -not -path './vendor/*' -exec ruby -c {} +",
    )


def find_php(folder: Path) -> Kind | None:
    if not (folder / "composer.json").is_file():
        return None
    scripts = members(read_object(folder / "composer.json").get("scripts"))
    install = install_once("vendor", "composer install --no-interaction")
    if "test" in scripts:
        return Kind("PHP", "composer.json", (install, "composer run-script test"))
    if first_file(folder, ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]):
        return Kind("PHP", "composer.json", (install, "vendor/bin/phpunit"))
    return Kind(
        "PHP",
        "composer.json",
        (
            install,
            "# No tests were found: this says only whether the files are valid PHP.",
            "find . -name '*.php' -not -path './vendor/*' -print0 | xargs -0 -r -n 1 php -l",
        ),
    )


def find_dart(folder: Path) -> Kind | None:
    if not (folder / "pubspec.yaml").is_file():
        return None
    tool = "flutter" if re.search(r"(?m)^[ \t]+sdk:[ \t]*flutter\b", read_text(folder / "pubspec.yaml")) else "dart"
    return Kind("Dart", "pubspec.yaml", (f"{tool} pub get", f"{tool} analyze", f"{tool} test"))


def quoted_folder(name: str) -> str | None:
    """Return a folder's name for a script; None for one that cannot stand in a line."""
    return shlex.quote(f"./{name}") if shown(name) == name else None

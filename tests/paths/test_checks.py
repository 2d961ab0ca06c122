"""Which files are tests, CI files and build files: a name or a folder decides, and nothing else."""

from measure import cpu_seconds, least

from code_commit.paths.checks import file_kind

KINDS = {
    "test": """
        tests/a.rs test/a.py spec/models/user_spec.rb __tests__/a.js __mocks__/axios.js e2e/login.ts Tests/AppTests/A.swift
        src/test/java/FooTest.java App.Tests/A.cs AppTests/A.swift integration_tests/a.py tests/data/expected.json
        src/__snapshots__/a.snap test_a.py a_test.go a_tests.py tests.py app/tests.py src/tests.rs test.js a-test.js a.spec.ts
        App.test.tsx a.cy.js TestFoo.java FooTest.kt FooTests.cs FooSpec.scala FooIT.java FooTestCase.php a_test.exs a_test.cc
        a_unittest.cc a.feature a.bats t/a.t a.phpt testdata/a.golden fixtures/a.yml conftest.py tests/conftest.py
        spec/spec_helper.rb test/test_helper.rb scripts/test.sh tests/package.json lib/Test/More.pm tests/unittest.py
        tsconfig.test.json run_tests.py scripts/run-tests.sh
    """,
    "ci": """
        .github/workflows/ci.yml .github/actions/a/action.yml .github/workflows/test.yml .gitlab-ci.yml .travis.yml
        .circleci/config.yml Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .pre-commit-config.yaml
        .husky/pre-commit .ci/run codecov.yml
    """,
    "build": """
        pytest.ini pytest.toml tox.ini noxfile.py setup.cfg setup.py pyproject.toml .coveragerc mypy.ini .flake8 .pylintrc
        ruff.toml .ruff.toml src/sitecustomize.py usercustomize.py a.pth package.json web/package.json jest.config.js
        jest.setup.ts vitest.config.ts vite.config.mjs karma.conf.js .mocharc.yml .nycrc playwright.config.ts .eslintrc.json
        cypress.config.ts eslint.config.mjs .eslintignore tsconfig.json biome.json gulpfile.js Gruntfile.js
        deno.json .npmrc pom.xml mvnw .mvn/maven.config build.gradle build.gradle.kts settings.gradle gradle.properties
        gradlew build.sbt checkstyle.xml testng.xml junit-platform.properties a/App.csproj App.sln Directory.Build.props
        .editorconfig phpunit.xml phpunit.xml.dist phpstan.neon composer.json Rakefile lib/tasks/a.rake .rspec .rubocop.yml
        go.mod go.work .golangci.yml Cargo.toml .cargo/config.toml clippy.toml rustfmt.toml rust-toolchain.toml
        CMakeLists.txt cmake/a.cmake Makefile makefile GNUmakefile rules.mk meson.build BUILD.bazel BUILD configure.ac
        SConstruct .clang-tidy justfile Taskfile.yml mix.exs rebar.config Package.swift pubspec.yaml analysis_options.yaml
        stack.yaml dune build.zig .luacheckrc .shellcheckrc bin/check lint.cmd build.rs
        scripts/build.sh pytest.py pytest/__init__.py src/pytest.py coverage.py lib/minitest/autorun.rb Dockerfile
    """,
    "": """
        src/a.rs src/latest.rs src/contest/a.rs src/attestation.py src/testimonials.tsx src/specification.md lib/inspect.rb
        src/pytest_helpers/a.py src/coverage/report.py src/emit.js src/package.py packages.json requirements.txt README.md
        Gemfile go.sum src/config.toml data/a.json src/Testimony.java src/audit.cs src/check.py app/build/a.py
        scripts/deploy.sh src/runner.ts src/suite.rb docs/conf.py manage.py src/mocks.ts src/exhibit.ts
    """,
}


def test_name_and_folders_of_a_file_say_its_kind():
    found = {kind: [path for path in paths.split() if file_kind(path) == kind] for kind, paths in KINDS.items()}
    assert found == {kind: paths.split() for kind, paths in KINDS.items()}


def test_ten_thousand_paths_take_no_second():
    def look() -> None:
        for number in range(5_000):
            file_kind(f"src/some/folder_of_it/module_{number}.py")
        file_kind("a" * 250 + "/" + "-test" * 50)

    assert least(lambda: cpu_seconds(look), 1) < 1

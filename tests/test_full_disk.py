"""A build that fills the disk with its output ends the run in a record that says so."""

import json
import subprocess
from pathlib import Path

import pytest
from command import CODE_COMMIT, recorded

ON_A_SMALL_DISK = """
mkdir agent-config/logs && mount -t tmpfs -o size=1m none agent-config/logs || exit 99
"$@"
echo "exit $?"
tail -qn 1 agent-config/logs/*/1-build.txt
cat agent-config/logs/*/run.json
"""


@pytest.mark.root("mount")
def test_a_build_that_fills_the_disk_is_told_in_the_log_and_in_the_record(project_folder: Path):
    (project_folder / "build.sh").write_text("#!/bin/sh\nyes 'a line of output' | head -c 3000000\n")
    recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    command = ["unshare", "-m", "sh", "-c", ON_A_SMALL_DISK, "sh", *CODE_COMMIT]
    done = subprocess.run(
        [*command, "--model", "replay:agent-config/recorded"],
        cwd=project_folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1-build.txt cannot be used: No space left on device" in done.stderr
    code, ending, record = done.stdout.split("\n", 2)
    assert code == "exit 5"
    assert ending.startswith("[build.sh: no result, the log file ")
    assert json.loads(record)["status"] == "build_error"
    assert json.loads(record)["finished"] is not None

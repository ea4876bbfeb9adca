"""What a user waits for: the start of the command line, a list of many runs.

Figures against the limits that the project has set itself, printed with ``-s``.
"""

import json
import subprocess
import sys
import time

import numpy as np

from vitolab.store import OpenRun, list_runs


def test_start_of_the_command_line():
    for what, program, limit in (
        ("import vitolab", "import vitolab", 0.5),
        (
            "vitolab --help",
            "import sys; sys.argv[1:] = ['--help']; from vitolab.cli import main; main()",
            0.7,
        ),
    ):
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
            seconds.append(time.perf_counter() - began)
        print(f"\n{what}: {np.median(seconds):.2f} s with the interpreter's own start")
        assert min(seconds) < limit


def test_ten_thousand_runs_are_listed_within_two_seconds(tmp_path):
    run = OpenRun.start(tmp_path / "one", "s", {"n": 2}, 0, "1")
    run.close("complete")
    manifest = json.loads((run.path / "run.json").read_text())
    manifest["parameters"] = {f"parameter {i}": list(range(50)) for i in range(20)}
    content = json.dumps(manifest, indent=1).encode()
    for i in range(10_000):
        folder = tmp_path / "many" / f"study{i % 5}" / f"20260101T{i:06d}Z-00000000"
        folder.mkdir(parents=True)
        (folder / "run.json").write_bytes(content)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        assert len(list_runs(tmp_path / "many")) == 10_000
        seconds.append(time.process_time() - began)
    print(f"\nlisting 10,000 runs of {len(content) / 1000:.1f} kB: {min(seconds):.2f} s CPU")
    assert min(seconds) < 2.0

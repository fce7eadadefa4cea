"""The runtime is killed at random moments while sandboxes run: nothing of it may stay.

TROUPE_CHAOS=N sets how often (default 20). This process is the reaper of whatever loses its parent,
so that no process can hide.
"""
import ctypes
import os
import pathlib
import random
import signal
import time
import unittest

from support import PATIENCE, TroupeTest

PR_SET_CHILD_SUBREAPER = 36
ROUNDS = int(os.environ.get("TROUPE_CHAOS", "20"))
# Sandboxes that compute, wait, fork, print, call tools and die, so that each phase is met.
CODE = """
import os, time, random
what = random.randrange(6)
if what == 0:
    while True: pass
if what == 1: time.sleep(60)
if what == 2:
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
    time.sleep(60)
if what == 3: os._exit(1)
if what == 4: print("x" * 100000)
final_answer(what)
"""


def children():
    pids = set()
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            pids |= {int(p) for p in (task / "children").read_text().split()}
        except OSError:
            pass
    return pids


def groups_of(pid):
    return [d for d, _, _ in os.walk("/sys/fs/cgroup")
            if os.path.basename(d).startswith(f"troupe.{pid}.")]


class Chaos(TroupeTest):
    def setUp(self):
        super().setUp()
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0)

    def assert_all_end(self):
        deadline = time.monotonic() + 10 * PATIENCE
        while children() and time.monotonic() < deadline:
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            time.sleep(0.005)
        self.assertEqual(children(), set(), "these outlived the runtime")

    def test_a_killed_runtime_leaves_nothing(self):
        data, script = self.dataset(400), self.script(latency_ms=5, code=CODE)
        chance = random.Random(1)
        pids = []
        for _ in range(ROUNDS):
            process = self.start("eval", data, "--model", f"mock/{script}", "--max-concurrency", 50,
                                 "--step-time", "2s", "--step-grace", "200ms",
                                 "--out", f"out{len(pids)}.db")
            pids.append(process.pid)
            time.sleep(chance.uniform(0.02, 1.5) * PATIENCE)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assert_all_end()
        # Directories stay behind a killed runtime, and the next one removes them.
        found = self.troupe("doctor", "--leaks")
        self.assertEqual(found.returncode, 1 if "control group" in found.stdout else 0)
        self.troupe("doctor")
        self.assertEqual([g for pid in pids for g in groups_of(pid)], [])
        self.assertEqual(self.troupe("doctor", "--leaks").stdout, "no leftovers\n")


if __name__ == "__main__":
    unittest.main()

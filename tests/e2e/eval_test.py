"""The main job, whole: a real dataset in real jails, resumed after kills and interrupts."""
import array
import fcntl
import json
import os
import random
import signal
import termios
import time
import unittest

from support import (PATIENCE, PROBLEMS, SOURCE, TroupeTest, children_of, processes_of, results)


class Demo(TroupeTest):
    def test_the_demo_batch_ends_as_its_generator_says(self):
        expected = json.loads((PROBLEMS / "problems.expected.json").read_text())
        script = os.path.relpath(PROBLEMS / "problems.mock.json", self.folder)
        done = self.troupe("eval", PROBLEMS / "problems.jsonl", "--model", f"mock/{script}",
                           "--config", PROBLEMS / "troupe.yaml", "--max-concurrency", 64,
                           "--step-time", "15s", "--out", "demo.db", timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.troupe("report", "demo.db")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("accuracy", report.stdout.lower())

        rows = results(self.folder / "demo.db")
        self.assertEqual(len(rows), expected["samples"])
        ends = {}
        for _, _, end in rows:
            ends[end] = ends.get(end, 0) + 1
        self.assertEqual(ends, expected["ends"])

        figures = json.loads(self.troupe("report", "demo.db", "--json").stdout)
        accuracy = json.dumps(figures)
        self.assertIn("0.9666", accuracy)

        again = self.troupe("eval", PROBLEMS / "problems.jsonl", "--model", f"mock/{script}",
                            "--config", PROBLEMS / "troupe.yaml", "--out", "demo.db")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(results(self.folder / "demo.db")), expected["samples"])

        trace = self.troupe("trace", "demo.db", "logs-06")
        self.assertEqual(trace.returncode, 0, trace.stderr)
        self.assertIn("final_answer", trace.stdout)


class Run(TroupeTest):
    def test_one_task_prints_its_answer_on_stdout_alone(self):
        script = self.script(code="x = 6 * 7\nfinal_answer(x)")
        done = self.troupe("run", "What is six times seven?", "--model", f"mock/{script}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "42\n")
        self.assertIn("x = 6 * 7", done.stderr)

    def test_json_output_is_one_object(self):
        done = self.troupe("run", "--json", "?", "--model", f"mock/{self.script()}")
        self.assertEqual(json.loads(done.stdout)["answer"], 3)
        self.assertEqual(done.stderr, "")

    def test_tokens_that_no_reply_told_are_no_zero(self):
        reply = {"text": "<code>\nfinal_answer(3)\n</code>", "usage": {"input": 0, "output": 0}}
        model = f"mock/{self.script(rules=[{'if_task_contains': '?', 'reply': reply}])}"
        done = self.troupe("run", "?", "--model", model, "--out", "o.db")
        self.assertIn("at least 0 tokens", done.stderr)
        report = self.troupe("report", "o.db")
        self.assertIn("too few: 1 reply told none", report.stdout)
        figures = json.loads(self.troupe("report", "o.db", "--json").stdout)
        self.assertEqual(figures["totals"]["tokens"]["untold_replies"], 1)

    def test_a_run_without_an_answer_says_so_with_its_exit_code(self):
        script = self.script(code="import itertools\nprint(id(object()))")
        done = self.troupe("run", "?", "--model", f"mock/{script}", "--max-steps", 2)
        self.assertEqual(done.returncode, 4, done.stderr)

    def test_a_run_that_nobody_reads_ends_when_it_is_told_to(self):
        script = self.script(latency_ms=50, code="print('x' * 60_000, id(object()))")
        process = self.start("run", "?", "--model", f"mock/{script}", "--max-steps", 10_000, "--out", "r.db")
        pipe = process.stderr.fileno()
        deadline = time.monotonic() + 30 * PATIENCE
        held = array.array("i", [0])
        while held[0] < 50_000 and time.monotonic() < deadline:  # of the 64 KiB that a pipe holds
            fcntl.ioctl(pipe, termios.FIONREAD, held)
            time.sleep(0.02)
        self.assertGreaterEqual(held[0], 50_000)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20 * PATIENCE), 3)

    def test_ctrl_c_before_the_work_begins_begins_none(self):
        process = self.start("eval", self.dataset(60), "--model", f"mock/{self.script(latency_ms=200)}",
                             "--out", "out.db")
        while not (self.folder / "out.db.lock").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60 * PATIENCE)
        self.assertEqual(process.returncode, 3, said)
        self.assertIn("before anything was run", said)
        self.assertEqual(results(self.folder / "out.db"), [])

    def test_an_evaluation_s_json_is_its_report_s(self):
        done = self.troupe("eval", self.dataset(3), "--model", f"mock/{self.script()}", "--out", "out.db", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), json.loads(self.troupe("report", "out.db", "--json").stdout))
        none = self.troupe("trace", "out.db", "--run", 9999)
        self.assertEqual((none.returncode, none.stdout), (2, ""))
        self.assertIn("there is no run 9999", none.stderr)

    def test_each_command_has_help(self):
        for command in ("run", "eval", "init", "report", "trace", "doctor", "bench", "mock"):
            for word in ("--help", "-h"):
                done = self.troupe(command, word)
                self.assertEqual(done.returncode, 0, (command, word, done.stderr))
                self.assertIn("usage", done.stdout.lower())


class ProcessExecutor(TroupeTest):
    def test_it_runs_a_batch_says_what_it_is_and_leaves_nothing(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        code = "import os, subprocess\nsubprocess.Popen(['sleep', '300'])\nfinal_answer(os.getcwd())"
        done = self.troupe("eval", self.dataset(6), "--model", f"mock/{self.script(code=code)}",
                           "--executor", "process", "--out", "out.db", "--max-concurrency", 3,
                           TMPDIR=str(temporary))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("isolation is none: a plain child process", done.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 6)
        report = json.loads(self.troupe("report", "out.db", "--json").stdout)
        self.assertTrue(report["machine"]["executor"]["isolation"].startswith("none: "))
        self.assertEqual(report["machine"]["executor"]["name"], "process")
        self.assertEqual(list(temporary.iterdir()), [])
        self.assertEqual(processes_of(self.folder), [])

    def test_it_is_never_chosen_by_itself(self):
        done = self.troupe("run", "--json", "?", "--model", f"mock/{self.script()}")
        self.assertEqual(json.loads(done.stdout)["answer"], 3)
        self.assertNotIn("process", done.stderr)

    def test_a_killed_runtime_leaves_nothing(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        code = "import subprocess\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\nwhile 1: pass"
        process = self.start("run", "?", "--model", f"mock/{self.script(code=code)}",
                             "--executor", "process", TMPDIR=str(temporary))
        deadline = time.monotonic() + 30 * PATIENCE
        while time.monotonic() < deadline and not any(temporary.glob("*/work")):
            time.sleep(0.02)
        time.sleep(1.0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 15 * PATIENCE
        while time.monotonic() < deadline and any(temporary.iterdir()):
            time.sleep(0.02)
        self.assertEqual(list(temporary.iterdir()), [])
        self.assertEqual(processes_of(self.folder), [])


class Interrupted(TroupeTest):
    def wait_for_results(self, journal, least, process):
        deadline = time.monotonic() + 60 * PATIENCE
        while time.monotonic() < deadline:
            self.assertIsNone(process.poll(), "it ended before it was to be interrupted")
            if journal.exists():
                try:
                    if len(results(journal)) >= least:
                        return
                except Exception:  # the schema is not there yet
                    pass
            time.sleep(0.02)
        self.fail("no results came")

    def eval_words(self, data, script):
        return ("eval", data, "--model", f"mock/{script}", "--scorer", "numeric", "--out", "out.db",
                "--max-concurrency", 8)

    def test_kill_9_loses_nothing_and_repeats_no_result(self):
        data, script = self.dataset(60), self.script(latency_ms=60)
        journal = self.folder / "out.db"
        chance = random.Random(7)
        for _ in range(4):
            process = self.start(*self.eval_words(data, script))
            self.wait_for_results(journal, 0, process)
            time.sleep(chance.uniform(0.05, 0.35))
            if process.poll() is not None:
                break
            boxes = children_of(process.pid)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assert_gone(boxes)
        done = self.troupe(*self.eval_words(data, script))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = results(journal)
        self.assertEqual(len(rows), 60)
        self.assertEqual(len({(s, e) for s, e, _ in rows}), 60)

    def assert_gone(self, pids):
        deadline = time.monotonic() + 5 * PATIENCE
        while time.monotonic() < deadline:
            alive = [p for p in pids if os.path.exists(f"/proc/{p}")
                     and "(troupe" in open(f"/proc/{p}/stat").read()
                     and ") Z" not in open(f"/proc/{p}/stat").read()]
            if not alive:
                return
            time.sleep(0.02)
        self.fail(f"{alive} outlived the runtime")

    def test_ctrl_c_once_finishes_the_running_samples_and_the_next_call_goes_on(self):
        data, script = self.dataset(60), self.script(latency_ms=200)
        journal = self.folder / "out.db"
        process = self.start(*self.eval_words(data, script))
        self.wait_for_results(journal, 8, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60 * PATIENCE)
        self.assertEqual(process.returncode, 3, said)
        self.assertIn("stopping", said)
        some = results(journal)
        self.assertLess(len(some), 60)
        self.assertTrue(all(end == "success" for _, _, end in some))
        done = self.troupe(*self.eval_words(data, script))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(results(journal)), 60)

    def test_ctrl_c_twice_cancels_at_once_and_the_journal_is_whole(self):
        data = self.dataset(40)
        script = self.script(code="while True: pass")
        journal = self.folder / "out.db"
        process = self.start(*self.eval_words(data, script), "--step-time", "120s")
        self.wait_for_results(journal, 0, process)
        time.sleep(1.0)
        boxes = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, said = process.communicate(timeout=60 * PATIENCE)
        self.assertLess(time.monotonic() - began, 5 * PATIENCE)
        self.assertEqual(process.returncode, 3, said)
        self.assertEqual(results(journal), [])
        self.assert_gone(boxes)


if __name__ == "__main__":
    unittest.main()

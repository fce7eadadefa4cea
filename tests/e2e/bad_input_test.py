"""Bad input gets one clear line, and loses nothing."""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from support import PATIENCE, TROUPE, TroupeTest, clean_environment, results


class BadInput(TroupeTest):
    def eval(self, data, *more, **environment):
        return self.troupe("eval", data, "--model", f"mock/{self.script()}", "--out", "out.db",
                           "--max-concurrency", 4, *more, **environment)

    def test_a_missing_dataset(self):
        self.assert_one_clear_line(self.eval("nowhere.jsonl"), "nowhere.jsonl", "No such file")

    def test_a_folder_as_dataset(self):
        self.assert_one_clear_line(self.eval(self.folder), str(self.folder))

    def test_a_broken_line_in_the_middle(self):
        data = self.write("data.jsonl", '{"input": "a", "target": "1"}\n{"input": "b", "target": }\n'
                                        '{"input": "c", "target": "3"}\n')
        self.assert_one_clear_line(self.eval(data), "data.jsonl", "line 2", "column")
        self.assertFalse((self.folder / "out.db").exists())
        done = self.eval(data, "--skip-bad-lines")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 bad line", done.stderr)
        self.assertEqual(len(results(self.folder / "out.db")), 2)

    def test_a_sample_of_another_shape(self):
        data = self.write("data.jsonl", '{"question": "a", "answer": "1"}\n')
        self.assert_one_clear_line(self.eval(data), "line 1", "input")
        done = self.eval(data, "--fields", "input=question", "--fields", "target=answer")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_duplicate_ids(self):
        data = self.write("data.jsonl", '{"id": "x", "input": "a"}\n{"id": "y", "input": "b"}\n'
                                        '{"id": "x", "input": "c"}\n')
        self.assert_one_clear_line(self.eval(data), "'x'", "1", "3")

    def test_an_empty_dataset(self):
        self.assert_one_clear_line(self.eval(self.write("data.jsonl", "\n")), "data.jsonl")

    def test_an_unknown_option_names_the_nearest(self):
        self.assert_one_clear_line(self.eval(self.dataset(1), "--max-concurency", 3),
                                   "--max-concurency", "--max-concurrency")

    def test_an_unknown_command_names_the_nearest(self):
        self.assert_one_clear_line(self.troupe("evla"), "evla", "eval")

    def test_an_unknown_config_key_names_file_line_and_the_nearest(self):
        self.write("troupe.yaml", "epochs: 1\nmax_step: 3\n")
        self.assert_one_clear_line(self.eval(self.dataset(1)), "troupe.yaml", "line 2", "max_steps")

    def test_a_value_out_of_range(self):
        self.assert_one_clear_line(self.eval(self.dataset(1), "--epochs", "0"), "epochs", "0")

    def test_a_value_from_the_environment_is_checked_too(self):
        done = self.eval(self.dataset(1), TROUPE_EPOCHS="many")
        self.assert_one_clear_line(done, "TROUPE_EPOCHS", "many")

    def test_no_key_for_a_provider(self):
        done = self.troupe("run", "?", "--model", "openai/gpt-4.1")
        self.assert_one_clear_line(done, "OPENAI_API_KEY")

    def test_a_proxy_that_cannot_be_used(self):
        def run(*more, **environment):
            return self.troupe("run", "?", "--model", "openai/x", "--base-url", "https://x.invalid",
                               *more, **{"OPENAI_API_KEY": "sk-test", **environment})

        self.assert_one_clear_line(run(ALL_PROXY="socks5://p:1"), "ALL_PROXY", "socks5", "http://")
        self.assert_one_clear_line(run("--proxy", "http://p:99999"), "--proxy", "1 to 65535")
        done = run("--proxy", "http://me:secret@p:1")
        self.assert_one_clear_line(done, "--proxy", "HTTPS_PROXY")
        self.assertNotIn("secret", done.stderr)
        self.assert_one_clear_line(run("--ca-file", "no.pem"), "--ca-file", "no.pem", "No such file")
        self.assert_one_clear_line(run(SSL_CERT_FILE="no.pem"), "SSL_CERT_FILE", "no.pem")
        self.assert_one_clear_line(run("--ca-file", "."), "--ca-file", "is a folder")
        self.write("text.pem", "no certificate")
        self.assert_one_clear_line(run("--ca-file", "text.pem"), "--ca-file", "text.pem", "PEM")

    def test_an_unknown_provider(self):
        self.assert_one_clear_line(self.troupe("run", "?", "--model", "opnai/gpt"), "opnai", "openai")

    def test_no_model_at_all(self):
        self.assert_one_clear_line(self.troupe("run", "?"), "model")

    def test_a_mock_script_with_a_typo(self):
        self.write("m.json", '{"defualt": "x"}')
        done = self.troupe("run", "?", "--model", "mock/m.json")
        self.assert_one_clear_line(done, "m.json", "defualt", "default")

    def test_a_folder_in_place_of_a_file(self):
        self.assert_one_clear_line(self.troupe("run", "?", "--model", "mock/."), "is a folder, not a file")
        self.assert_one_clear_line(self.troupe("run", "?", "--model", f"mock/{self.script()}", "--prompts", "."),
                                   "the prompt file", "is a folder, not a file")

    def test_an_unknown_tool(self):
        done = self.troupe("run", "?", "--model", f"mock/{self.script()}", "--tools", "convert_unit")
        self.assert_one_clear_line(done, "convert_unit", "convert_units")

    def test_a_journal_from_a_newer_version(self):
        data = self.dataset(2)
        self.assertEqual(self.eval(data).returncode, 0)
        db = sqlite3.connect(self.folder / "out.db")
        db.execute("pragma user_version = 999")
        db.close()
        for done in (self.eval(data), self.troupe("report", "out.db"),
                     self.troupe("trace", "out.db", "q0")):
            self.assertIn(done.returncode, (1, 2))
            self.assert_one_clear_line(done, "newer", code=done.returncode)

    def test_a_file_that_is_no_journal(self):
        self.write("out.db", "something else entirely, long enough to be looked at\n" * 50)
        self.assert_one_clear_line(self.eval(self.dataset(1)), "out.db")
        self.assertIn("something else", (self.folder / "out.db").read_text())
        self.assertIn(self.troupe("report", "out.db").returncode, (1, 2))

    def test_a_journal_of_another_dataset(self):
        self.assertEqual(self.eval(self.dataset(2)).returncode, 0)
        self.assert_one_clear_line(self.eval(self.dataset(3)), "another dataset", "--out")
        self.assertEqual(len(results(self.folder / "out.db")), 2)

    def test_a_journal_begun_with_a_team_that_was_told_something_else(self):
        def say(text):
            self.write("child.yaml", f"name: child\ndescription: Helps.\ninstructions: {text}\nlimits: {{run_time: 9s}}\n")

        data = self.dataset(2)
        self.write("a.yaml", "children: [child.yaml]\nprompts:\n  system_prompt: One.\n")
        say("Be brief.")
        self.assertEqual(self.eval(data, "-a", "a.yaml").returncode, 0)
        self.assertEqual(self.eval(data, "-a", "a.yaml").returncode, 0)
        say("Be long.")
        self.assert_one_clear_line(self.eval(data, "-a", "a.yaml"), "told something else", "--out")
        say("Be brief.")
        self.write("a.yaml", "children: [child.yaml]\nprompts:\n  system_prompt: Two.\n")
        self.assert_one_clear_line(self.eval(data, "-a", "a.yaml"), "told something else", "--out")
        self.write("a.yaml", "# the same, and more time\nchildren: [child.yaml]\nlimits: {run_time: 1m}\n"
                             "prompts:\n  system_prompt: One.\n")
        self.assertEqual(self.eval(data, "-a", "a.yaml").returncode, 0)

    def test_a_journal_begun_with_another_model_or_scorer(self):
        data = self.dataset(2)
        self.assertEqual(self.eval(data, "--scorer", "numeric").returncode, 0)
        self.assert_one_clear_line(self.eval(data, "--scorer", "exact"), "--scorer", "numeric")
        other = self.script("other.json")
        done = self.troupe("eval", data, "--model", f"mock/{other}", "--out", "out.db",
                           "--scorer", "numeric")
        self.assert_one_clear_line(done, "--model", "other.json")

    def test_a_profile_that_is_not_there(self):
        self.assert_one_clear_line(self.eval(self.dataset(1), "--profile", "defualt"), "profile")
        self.assertFalse((self.folder / "out.db").exists())

    def test_output_that_cannot_be_written(self):
        self.assertEqual(self.eval(self.dataset(1)).returncode, 0)
        with open("/dev/full", "w") as full:
            done = subprocess.run([TROUPE, "report", "out.db"], cwd=self.folder, stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=clean_environment(),
                                  timeout=60 * PATIENCE, check=False)
        self.assert_one_clear_line(done, "could not be written", code=1)

    def test_an_out_folder_that_is_not_there(self):
        done = self.troupe("eval", self.dataset(1), "--model", f"mock/{self.script()}",
                           "--out", "no/such/out.db")
        self.assert_one_clear_line(done, "no/such")

    def test_a_trace_of_a_sample_that_is_not_there(self):
        self.assertEqual(self.eval(self.dataset(2)).returncode, 0)
        self.assert_one_clear_line(self.troupe("trace", "out.db", "q9"), "q9")

    def test_a_report_of_a_missing_file(self):
        self.assert_one_clear_line(self.troupe("report", "nowhere.db"), "nowhere.db")
        self.assertFalse((self.folder / "nowhere.db").exists())

    def test_targets_that_fit_no_number(self):
        data = self.write("data.jsonl", '{"input": "a", "target": "blue"}\n')
        self.assert_one_clear_line(self.eval(data, "--scorer", "numeric"), "numeric")

    def test_explain_says_where_each_value_came_from(self):
        self.write("troupe.yaml", "epochs: 3\n")
        done = self.troupe("eval", "x", "--explain", "--limit", "5", TROUPE_MAX_STEPS="7")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("troupe.yaml, line 1", "TROUPE_MAX_STEPS", "--limit", "default"):
            self.assertIn(part, done.stdout)


class FullDisk(TroupeTest):
    @unittest.skipIf(os.geteuid() != 0, "mounting a small file system needs root")
    def test_a_full_disk_ends_the_batch_clearly_and_keeps_what_was_written(self):
        data = self.dataset(400)
        script = self.script(code="print('x' * 20000)\nfinal_answer(1)")
        small = self.folder / "small"
        small.mkdir()
        # A mount namespace of its own: the small file system is gone with the shell.
        command = (f"mount -t tmpfs -o size=1m none {small} && "
                   f"{TROUPE} eval {data} --model mock/{script} --out {small}/out.db --quiet; "
                   f"code=$?; cp {small}/out.db* {self.folder}/ 2>/dev/null; exit $code")
        done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True,
                              env=clean_environment(), timeout=120 * PATIENCE, check=False,
                              cwd=self.folder)
        self.assert_one_clear_line(done, "journal", "full", code=1)
        kept = results(self.folder / "out.db")
        self.assertGreater(len(kept), 0)
        self.assertLess(len(kept), 400)
        # With room it goes on.
        again = self.troupe("eval", data, "--model", f"mock/{script}", "--out", "out.db", "--quiet")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(results(self.folder / "out.db")), 400)


# Runs a program as root of a user namespace that has all ids. What argv[1] says is written to that
# namespace's own max_user_namespaces.
IN_USER_NAMESPACE = """
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    if ctypes.CDLL(None).unshare(0x10000000) != 0: os._exit(99)
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    open("/proc/sys/user/max_user_namespaces", "w").write(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
os.read(ready[0], 1)
for which in "uid_map", "gid_map":
    open(f"/proc/{pid}/{which}", "w").write("0 0 4294967295")
os.write(go[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


class Profiles(TroupeTest):
    """A profile that cannot be had is refused with the mend, before any sandbox starts."""

    def run_with(self, profile):
        path = self.write("p.yaml", profile)
        return self.troupe("run", "?", "--model", f"mock/{self.script()}", "--profile", path)

    def test_an_unknown_key(self):
        self.assert_one_clear_line(self.run_with("memry: 1GiB\n"), "p.yaml", "line 1", "'memory'")

    def test_impossible_limits(self):
        for limit in ("memory: 1KiB", "memory: 99999GiB", "processes: 0", "cpus: -1",
                      "open_files: 1", "work_size: many"):
            name, value = limit.split(": ")
            self.assert_one_clear_line(self.run_with(f"description: x\n{limit}\n"), "line 2", value)

    def test_a_missing_module(self):
        done = self.run_with("preload: [no_such_module]\n")
        self.assert_one_clear_line(done, "no_such_module", "install it", "preload", code=1)

    def test_a_root_without_python(self):
        (self.folder / "root").mkdir()
        done = self.run_with(f"root: {self.folder}/root\npython: /usr/bin/python3\n")
        self.assert_one_clear_line(done, "start /usr/bin/python3", "the profile's python", code=1)

    def test_a_root_that_is_not_there(self):
        self.assert_one_clear_line(self.run_with("root: /no/such\n"), "line 1", "/no/such")

    def test_a_mount_that_is_not_there(self):
        self.assert_one_clear_line(self.run_with("mounts: ['/no/such:/data']\n"), "/no/such")

    def test_a_mount_over_what_is_the_sandboxs_own(self):
        self.assert_one_clear_line(self.run_with("mounts: ['/usr:/proc']\n"), "/proc", "elsewhere")

    def test_yaml_that_is_none(self):
        self.assert_one_clear_line(self.run_with("memory: [1\n"), "p.yaml")


@unittest.skipIf(os.geteuid() != 0, "a poorer machine is made with root's namespaces")
class PoorMachine(TroupeTest):
    """What the machine does not give is an error with the mend, or a weaker level that is told."""

    def on(self, poverty, *words, program=TROUPE):
        """The program in a mount namespace of its own, in which `poverty` was run by a shell."""
        command = [program, *map(str, words)]
        return subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-ec",
                               poverty + '\nexec "$0" "$@"', *command],
                              capture_output=True, text=True, env=clean_environment(),
                              timeout=120 * PATIENCE, check=False, cwd=self.folder,
                              stdin=subprocess.DEVNULL)

    def in_user_namespace(self, limit, *words):
        return subprocess.run(["python3", "-c", IN_USER_NAMESPACE, str(limit), TROUPE,
                               *map(str, words)],
                              capture_output=True, text=True, env=clean_environment(),
                              timeout=120 * PATIENCE, check=False, cwd=self.folder,
                              stdin=subprocess.DEVNULL)

    def runs(self):
        return "run", "?", "--model", f"mock/{self.script()}"

    def outside_tmp(self):
        """Copies of the program and of a run's script where no test covers them."""
        elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="troupe-e2e-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, elsewhere, ignore_errors=True)
        for part in pathlib.Path(TROUPE).parent.glob("troupe*"):
            shutil.copy(part, elsewhere)
        script = shutil.copy(self.script(), elsewhere)
        return elsewhere / pathlib.Path(TROUPE).name, ("run", "?", "--model", f"mock/{script}")

    def assert_works(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("success", done.stderr + done.stdout)
        self.assertNotIn("Traceback", done.stderr)

    def test_no_user_namespaces(self):
        done = self.in_user_namespace(0, *self.runs())
        self.assert_one_clear_line(done, "user.max_user_namespaces", "No space left", code=1)
        self.assertNotIn("warning", done.stderr)

    def test_no_user_namespaces_for_a_plain_user(self):
        done = subprocess.run(["unshare", "-Ur", "sh", "-ec",
                               'echo 0 > /proc/sys/user/max_user_namespaces\nexec "$0" "$@"',
                               TROUPE, *self.runs()],
                              capture_output=True, text=True, env=clean_environment(),
                              timeout=120 * PATIENCE, check=False, cwd=self.folder,
                              stdin=subprocess.DEVNULL)
        self.assert_one_clear_line(done, "user.max_user_namespaces", "No space left", code=1)

    def test_a_user_namespace_with_all_ids_is_as_good(self):
        self.assert_works(self.in_user_namespace(1000, *self.runs()))

    def test_no_control_groups(self):
        gone = "umount -l /sys/fs/cgroup/* 2>/dev/null || true\numount -l /sys/fs/cgroup || true"
        self.assert_works(self.on(gone, *self.runs()))
        told = self.on(gone, "doctor").stdout
        self.assertIn("cgroup limits: memory, processes and CPU are bounded by rlimits", told)
        self.write("p.yaml", "require: [cgroups]\n")
        refused = self.on(gone, *self.runs(), "--profile", self.folder / "p.yaml")
        self.assert_one_clear_line(refused, "requires cgroups", "no hierarchy", code=1)

    def test_control_groups_that_cannot_be_written(self):
        read_only = ("for m in $(awk '$5 ~ \"^/sys/fs/cgroup\" {print $5}' /proc/self/mountinfo)\n"
                     "do mount -o remount,bind,ro $m\ndone")
        self.assert_works(self.on(read_only, *self.runs()))
        self.assertIn("Read-only file system", self.on(read_only, "doctor").stdout)

    def test_a_masked_proc(self):
        """As containers have it: no fresh /proc may be mounted, and none is better than theirs."""
        masked = "mount --bind /dev/null /proc/cmdline\nmount -t tmpfs -o ro none /proc/fs"
        self.assert_works(self.on(masked, *self.runs()))
        told = self.on(masked, "doctor")
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertIn("/proc inside: this host masks parts of its own", told.stdout)

    def test_a_full_tmp(self):
        full = ("mount -t tmpfs -o size=64k none /tmp\n"
                "dd if=/dev/zero of=/tmp/fill bs=1k 2>/dev/null || true\ncd /")
        program, words = self.outside_tmp()
        self.assert_works(self.on(full, *words, program=program))
        self.assertIn("full", self.on(full, "doctor", program=program).stdout)

    def test_a_read_only_tmp(self):
        read_only = "mount -t tmpfs -o ro none /tmp\ncd /"
        program, words = self.outside_tmp()
        self.assert_works(self.on(read_only, *words, program=program))
        self.assert_one_clear_line(self.on(read_only, *words, "--executor", "process",
                                           program=program),
                                   "/tmp", "Read-only file system", "TMPDIR", code=1)
        told = self.on(read_only, "doctor", program=program)
        self.assertIn("Read-only file system", told.stdout)
        self.assertNotIn("internal error", told.stderr)

    def test_a_read_only_home(self):
        home = self.folder / "home"
        home.mkdir()
        poverty = f"mount -t tmpfs -o ro none {home}\nexport HOME={home}"
        self.assert_works(self.on(poverty, *self.runs()))
        data = self.dataset(1)
        mock = self.script()
        done = self.on(poverty + f"\ncd {home}", "eval", data, "--model", f"mock/{mock}")
        self.assert_one_clear_line(done, "Read-only file system", ".db")
        elsewhere = self.on(poverty + f"\ncd {home}", "eval", data, "--model", f"mock/{mock}",
                            "--out", self.folder / "out.db")
        self.assertEqual(elsewhere.returncode, 0, elsewhere.stderr)


if __name__ == "__main__":
    unittest.main()

"""Bad input gets one clear line, and loses nothing."""
import json
import os
import subprocess
import sqlite3
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

    def test_an_unknown_provider(self):
        self.assert_one_clear_line(self.troupe("run", "?", "--model", "opnai/gpt"), "opnai", "openai")

    def test_no_model_at_all(self):
        self.assert_one_clear_line(self.troupe("run", "?"), "model")

    def test_a_mock_script_with_a_typo(self):
        self.write("m.json", '{"defualt": "x"}')
        done = self.troupe("run", "?", "--model", "mock/m.json")
        self.assert_one_clear_line(done, "m.json", "defualt", "default")

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


if __name__ == "__main__":
    unittest.main()

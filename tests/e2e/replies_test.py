"""Replies that are kept: none is paid twice, and a recording stands in for the model."""
import json
import sqlite3
import unittest

from support import FakeEndpoint, TroupeTest, chat_reply, results

ANSWER = "Thought: easy.\n<code>\nfinal_answer(3)\n</code>"
SECRET = "sk-test-0123456789abcdefghij"


class Replies(TroupeTest):
    def eval(self, url, out, *more, count=10, **environment):
        done = self.troupe("eval", self.dataset(count), "--model", "openai/fake", "--base-url", url,
                           "--scorer", "numeric", "--out", out, "--max-concurrency", 4, *more,
                           **{"OPENAI_API_KEY": SECRET, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / out)],
                         ["success"] * len(results(self.folder / out)))

    def shelf(self, out):
        with sqlite3.connect(self.folder / out) as journal:
            return json.loads(journal.execute("SELECT stats FROM batch").fetchone()[0])["shelf"]

    def server(self):
        return FakeEndpoint(lambda n, b: (200, {"content-type": "application/json"},
                                          chat_reply(ANSWER)))

    def test_a_second_batch_asks_the_model_for_nothing(self):
        with self.server() as server:
            self.eval(server.url, "one.db", "--cache", "on", "--cache-file", "c.db")
            self.assertEqual(len(server.requests), 10)
            self.eval(server.url, "two.db", "--cache", "on", "--cache-file", "c.db")
            self.assertEqual(len(server.requests), 10)
            self.assertEqual(self.shelf("two.db")["found"], 10)
            self.eval(server.url, "three.db", "--cache", "refresh", "--cache-file", "c.db")
            self.assertEqual(len(server.requests), 20)
        report = self.troupe("report", "two.db").stdout
        self.assertIn("0 model requests", report)
        self.assertIn("found 10", report)

    def test_epochs_are_independent_draws(self):
        with self.server() as server:
            self.eval(server.url, "one.db", "--epochs", 3, "--cache", "on", "--cache-file", "c.db",
                      count=4)
            self.assertEqual(len(server.requests), 12)

    def test_a_recording_stands_in_for_the_model_and_has_no_key(self):
        with self.server() as server:
            self.eval(server.url, "one.db", "--record", "tape.jsonl")
        tape = (self.folder / "tape.jsonl").read_text()
        self.assertEqual(len(tape.splitlines()), 11)
        self.assertNotIn(SECRET, tape)
        done = self.troupe("eval", self.dataset(10), "--model", "openai/fake", "--scorer", "numeric",
                           "--out", "two.db", "--replay", "tape.jsonl", OPENAI_API_KEY="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(results(self.folder / "two.db")), 10)
        self.assertTrue(all(end == "success" for _, _, end in results(self.folder / "two.db")))

    def test_a_request_that_was_not_recorded_ends_its_run_with_the_difference(self):
        with self.server() as server:
            self.eval(server.url, "one.db", "--record", "tape.jsonl", count=1)
        done = self.troupe("run", "something else", "--model", "openai/fake", "--replay", "tape.jsonl",
                           OPENAI_API_KEY="")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("tape.jsonl has no reply for this request: the nearest one, line 2", done.stderr)
        self.assertIn("something else", done.stderr)

    def test_a_refused_command_leaves_no_recording_in_the_way_of_the_next(self):
        done = self.troupe("run", "?", "--model", "openai/fake", "--record", "a.jsonl", OPENAI_API_KEY="")
        self.assert_one_clear_line(done, "no key for openai")
        self.assertFalse((self.folder / "a.jsonl").exists())

    def test_the_keys_of_all_models_of_a_team_are_left_out(self):
        with self.server() as server:
            self.write("other.yaml", f"name: other\ndescription: Counts.\nmodel: openai/small\nbase_url: {server.url}\n"
                                     "api_key_env: OTHER_KEY\ninstructions: the word is OTHERSECRET99\n")
            self.write("manager.yaml", "name: manager\nkind: tool\nchildren: [other.yaml]\n")
            self.write("mock.json", json.dumps({
                "rules": [{"if_last_contains": "3", "reply": {"tool_calls": [
                    {"name": "final_answer", "arguments": {"answer": "ok"}}]}}],
                "default": {"tool_calls": [{"name": "other", "arguments": {"task": "Count."}}]}}))
            done = self.troupe("run", "?", "-a", "manager.yaml", "--model", "mock/mock.json", "--record", "a.jsonl",
                               OTHER_KEY="OTHERSECRET99")
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
        recorded = (self.folder / "a.jsonl").read_text()
        self.assertIn("the word is", recorded)
        self.assertNotIn("OTHERSECRET99", recorded)

    def test_files_that_cannot_serve_are_refused_before_anything_runs(self):
        self.write("there.jsonl", "x")
        self.write("text.db", "this is no database, and long enough to be taken for its header")
        for words, part in ((["--record", "there.jsonl"], "is there already"),
                            (["--replay", "none.jsonl"], "cannot be read"),
                            (["--replay", "there.jsonl"], "line 1"),
                            (["--cache", "on", "--cache-file", "text.db"], "text.db"),
                            (["--record", "a", "--replay", "b"], "exclude each other")):
            done = self.troupe("run", "x", "--model", "openai/fake", *words, OPENAI_API_KEY=SECRET)
            self.assert_one_clear_line(done, part)


if __name__ == "__main__":
    unittest.main()

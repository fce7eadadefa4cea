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

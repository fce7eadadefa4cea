"""Evaluations against a model server that this project did not write: aimock, where it is installed."""
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import unittest
import urllib.request

from support import PATIENCE, TroupeTest, clean_environment, results

JUDGES = pathlib.Path(os.environ.get("TROUPE_JUDGES") or pathlib.Path.home() / ".cache/troupe/judges")
SERVER = JUDGES / "node_modules/@copilotkit/aimock/dist/cli.js"

USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
TURNS = ["Thought: first a l\u00f6\u00f6k.\n<code>\nprint(6 * 7)\n</code>",
         "Thought: that is it.\n<code>\nfinal_answer(3)\n</code>"]

# Every way to it: the model's name, the path of its API, more words, more variables.
WAYS = {
    "OpenAI's chat completions": ("openai/gpt-x", "/v1", [], {"OPENAI_API_KEY": "k"}),
    "OpenAI's Responses": ("openai/gpt-x", "/v1", ["--api", "responses"], {"OPENAI_API_KEY": "k"}),
    "Anthropic's Messages": ("anthropic/claude-x", "/v1", [], {"ANTHROPIC_API_KEY": "k"}),
    "Gemini's compatible API": ("gemini/gemini-x", "/v1beta/openai", [], {"GEMINI_API_KEY": "k"}),
    "Azure's deployments": ("azure/gpt-x", "", ["--api-version", "2024-10-21"],
                            {"AZURE_OPENAI_API_KEY": "k"}),
    "OpenRouter": ("openrouter/x/y", "/api/v1", [], {"OPENROUTER_API_KEY": "k"}),
    "Ollama": ("ollama/llama-x", "/v1", [], {}),
}
WIRES = ["OpenAI's chat completions", "OpenAI's Responses", "Anthropic's Messages"]


class Aimock(TroupeTest):
    @classmethod
    def setUpClass(cls):
        if shutil.which("node") is None:
            raise unittest.SkipTest("node is not installed")
        if not SERVER.is_file():
            raise unittest.SkipTest(f"aimock not in {JUDGES}; to have it: npm install --prefix {JUDGES} "
                                    "--legacy-peer-deps @copilotkit/aimock@1")

    def serve(self, *words, turns=TURNS):
        """A server that gives a run's turn its reply, and its URL."""
        fixtures = {"fixtures": [{"match": {"turnIndex": n}, "response": {"content": text, "usage": USAGE}}
                                 for n, text in enumerate(turns)]}
        process = subprocess.Popen(
            ["node", SERVER, "-p", "0", "-f", self.write("fixtures.json", json.dumps(fixtures)),
             "--journal-max", "0", "--chunk-size", "5", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.folder,
            env=clean_environment(AIMOCK_STRICT_TURN_INDEX="1"), stdin=subprocess.DEVNULL)

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        for line in process.stdout:
            if found := re.search(r"listening on (http://\S+)", line):
                return found[1]
        self.fail("aimock did not start")

    def answers(self, url):
        """What it has answered: status and fault of each request."""
        with urllib.request.urlopen(f"{url}/__aimock/journal", timeout=20 * PATIENCE) as journal:
            return [(e["response"]["status"], e["response"].get("chaosAction")) for e in json.load(journal)]

    def words(self, way, url):
        model, path, more, environment = WAYS[way]
        return ["--model", model, "--base-url", url + path, *more], environment

    def eval(self, way, url, count, *more):
        """The ends of all samples; as many as there are samples."""
        words, environment = self.words(way, url)
        out = self.folder / (re.sub(r"\W", "", way) + ".db")
        done = self.troupe("eval", self.dataset(count), "--scorer", "numeric", "--out", out, *words, *more,
                           **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = results(out)
        self.assertEqual({(sample, epoch) for sample, epoch, _ in rows}, {(f"q{i}", 1) for i in range(count)})
        self.assertEqual(len(rows), count)
        return [end for _, _, end in rows], out

    def test_a_batch_over_every_api_that_both_speak(self):
        for way in WAYS:
            with self.subTest(way):
                url = self.serve()
                ends, out = self.eval(way, url, 5)
                self.assertEqual(ends, ["success"] * 5)
                self.assertEqual(self.answers(url), [(200, None)] * 10)
                with sqlite3.connect(out) as journal:
                    used = journal.execute("SELECT DISTINCT tokens_input, tokens_output FROM results").fetchall()
                self.assertEqual(used, [(200, 20)])

    def test_a_watched_run_over_every_api_that_both_speak(self):
        for way in WAYS:
            with self.subTest(way):
                words, environment = self.words(way, self.serve())
                done = self.troupe("run", "What is 6 times 7?", *words, **environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, "3\n")
                self.assertIn("first a l\u00f6\u00f6k.", done.stderr)

    def test_every_sample_is_accounted_for_under_429s(self):
        refusals = 0  # of all ways together: one may have the luck to meet none
        for way in WIRES:
            with self.subTest(way):
                # Its refusals state 60 requests a minute, so about one a second goes from the first on.
                url = self.serve("--chaos-ratelimit", 0.3)
                ends, _ = self.eval(way, url, 8, "--attempts", 40)
                self.assertEqual(ends, ["success"] * 8)
                answers = self.answers(url)
                refused = answers.count((429, "rateLimit"))
                self.assertEqual(answers.count((200, None)), 16)
                self.assertEqual(len(answers), 16 + refused)
                refusals += refused
        self.assertGreater(refusals, 0)

    def test_every_sample_is_accounted_for_under_all_its_faults(self):
        faults = ("--chaos-drop", 0.1, "--chaos-malformed", 0.1, "--chaos-disconnect", 0.1,
                  "--chaos-ratelimit", 0.05, "--chaos-latency", 20)
        met = 0  # as above
        for way in WIRES:
            with self.subTest(way):
                url = self.serve(*faults)
                ends, _ = self.eval(way, url, 6, "--attempts", 40)
                self.assertEqual(ends, ["success"] * 6)
                answers = self.answers(url)
                self.assertEqual(answers.count((200, None)), 12)
                met += len(answers) - 12
        self.assertGreater(met, 0)

    def test_samples_that_only_meet_faults_end_as_errors_that_say_so(self):
        for fault, words in (("drop", "500"), ("malformed", "not JSON"), ("disconnect", "closed"),
                             ("ratelimit", "429")):
            with self.subTest(fault):
                url = self.serve(f"--chaos-{fault}", 1)
                ends, out = self.eval(WIRES[0], url, 3, "--attempts", 2)
                self.assertEqual(ends, ["error"] * 3)
                self.assertIn(words, self.troupe("trace", out, "q0").stdout)
                out.unlink()


if __name__ == "__main__":
    unittest.main()

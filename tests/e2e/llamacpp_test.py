"""Evaluations against a real llama.cpp server, where one is installed, with a model that says one text."""
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile
import unittest

from support import PATIENCE, TroupeTest, results

JUDGES = pathlib.Path(os.environ.get("TROUPE_JUDGES") or pathlib.Path.home() / ".cache/troupe/judges")
ROOT = JUDGES / "forky"
HOW_TO = ("debootstrap --variant=minbase --include=llama.cpp-tools,python3-gguf forky "
          f"{ROOT} MIRROR /usr/share/debootstrap/scripts/sid")
TEXT = "Thought: \u00e9asy.\n<code>\nfinal_answer(3)\n</code> and more"
APIS = ("chat", "responses", "messages")


class LlamaCpp(TroupeTest):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not (ROOT / "usr/bin/llama-server").is_file():
            raise unittest.SkipTest(f"llama.cpp's server is not in {ROOT}, or this is not root, who alone can go "
                                    f"there; to have it: {HOW_TO}")
        number, name = tempfile.mkstemp(prefix="troupe-tiny-", suffix=".gguf", dir=ROOT / "tmp")
        os.close(number)
        cls.addClassCleanup(os.unlink, name)
        model = "/tmp/" + pathlib.Path(name).name
        maker = pathlib.Path(__file__).with_name("tiny_model.py").read_bytes()
        subprocess.run(["chroot", ROOT, "python3", "-", model, TEXT], input=maker, check=True,
                       timeout=60 * PATIENCE)
        server = subprocess.Popen(
            ["chroot", ROOT, "llama-server", "-m", model, "--jinja", "-c", "65536", "-np", "4", "-t", "1",
             "--host", "127.0.0.1", "--port", "0"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.kill)
        for line in server.stderr:
            if found := re.search(rb"listening on (http://\S+)", line):
                cls.url = found[1].decode() + "/v1"
                break
        else:
            raise AssertionError("llama.cpp's server did not start")
        log = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)  # a full pipe would stop it
        server.stderr.close()
        cls.addClassCleanup(log.wait)
        cls.addClassCleanup(server.kill)

    def test_a_batch_over_each_of_its_apis(self):
        for api in APIS:
            with self.subTest(api):
                out = self.folder / f"{api}.db"
                done = self.troupe("eval", self.dataset(12), "--model", "llamacpp/tiny", "--api", api,
                                   "--base-url", self.url, "--scorer", "numeric", "--out", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([end for _, _, end in results(out)], ["success"] * 12)
                with sqlite3.connect(out) as journal:
                    read, cached, least = journal.execute(
                        "SELECT sum(tokens_input), sum(tokens_cached), min(tokens_output) FROM results").fetchone()
                self.assertGreater(read, 12 * 1000)
                self.assertGreater(least, 0)
                if api != "responses":
                    self.assertGreater(cached, read // 4)  # the runs share their system prompt
                self.assertLess(cached, read)

    def test_a_watched_run_over_each_of_its_apis(self):
        for api in APIS:
            with self.subTest(api):
                done = self.troupe("run", "What is 3?", "--model", "llamacpp/tiny", "--api", api,
                                   "--base-url", self.url)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, "3\n")
                self.assertIn("Thought: \u00e9asy.", done.stderr)
                self.assertNotIn("and more", done.stderr)

    def test_what_it_refuses_is_told_in_its_own_words_and_asked_once(self):
        for api in APIS:
            with self.subTest(api):
                done = self.troupe("run", "x" * 40_000, "--model", "llamacpp/tiny", "--api", api,
                                   "--base-url", self.url)
                self.assert_one_clear_line(done, "exceeds the available context size", code=4)


if __name__ == "__main__":
    unittest.main()

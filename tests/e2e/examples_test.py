"""The examples as a user builds them: from an installed copy, with its own CMake, against mocks."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import PATIENCE, SOURCE, clean_environment

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD", ""))


def run(*words, cwd=None, timeout=300):
    return subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, check=False,
                          timeout=timeout * PATIENCE, env=clean_environment(), stdin=subprocess.DEVNULL)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-examples-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix = cls.folder / "prefix"
        done = run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)

    def example(self, name, *words):
        """Builds the example outside the source tree and runs it beside its mock script."""
        build = self.folder / name
        for step in (("cmake", "-S", SOURCE / "examples" / name, "-B", build, "-G", "Ninja",
                      f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug",
                      "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"),
                     ("cmake", "--build", build)):
            done = run(*step, timeout=600)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return run(build / name, *words, cwd=SOURCE / "examples" / name)

    def test_one_agent(self):
        done = self.example("01_one_agent")
        self.assertEqual((done.returncode, done.stdout), (0, "success: It is 5.\n"), done.stderr)

    def test_tools_are_called_from_a_sandbox(self):
        done = self.example("02_tools")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('"tool":"order"', done.stdout)
        self.assertTrue(done.stdout.endswith("success after 3 turns: 270; nuts: 150\n"), done.stdout)

    def test_a_thousand_at_once(self):
        done = self.example("03_many")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^1000 of 1000 answered, \d+ tokens, \d+ runs/s\n$")

    def test_coroutines_in_an_io_context_of_ones_own(self):
        done = self.example("04_asio")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "first: success word\nboth: word word\nrace: the deadline\n")

    def test_a_manager_has_its_workers_look_things_up_at_once(self):
        done = self.example("05_manager_and_workers")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("  researcher calls population\n"), 3, done.stdout)
        self.assertRegex(done.stdout, r"success: Turin \(\d+ tokens, the researchers' among them\)\n$")

    def test_a_judge_hears_both_sides(self):
        done = self.example("06_debate")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("judge to advocate: "), 2, done.stdout)
        self.assertTrue(done.stdout.endswith("success: No: what the advocate could not answer is who maintains it.\n"),
                        done.stdout)

    def test_work_goes_from_hand_to_hand(self):
        done = self.example("07_pipeline")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "user -> writer\nwriter -> editor\neditor -> checker\nchecker -> archive\n"
                         "success: The lift is out of order until Monday. Please take the stairs.\n")

    def test_nothing_installed_shows_caf_or_boost_but_asio_hpp(self):
        headers = sorted((self.prefix / "include").rglob("*.hpp"))
        self.assertGreater(len(headers), 5)
        for header in headers:
            shown = re.findall(r'#\s*include\s+[<"](caf|boost)/', header.read_text())
            self.assertEqual(set(shown), {"boost"} if header.name == "asio.hpp" else set(), header)

    def test_the_library_shows_the_public_names_alone(self):
        library, = (self.prefix).rglob("libtroupe.so")
        done = run("nm", "-DC", "--defined-only", library)
        names = [l.split(" ", 2)[2] for l in done.stdout.splitlines()]
        self.assertTrue(any("troupe::runtime::start" in n for n in names))
        self.assertEqual([n for n in names if not n.startswith("troupe::")], [])

    def test_the_installed_program_is_whole(self):
        script = self.folder / "mock.json"
        script.write_text(json.dumps({"default": "<code>\nfinal_answer(6 * 7)\n</code>"}))
        done = run(self.prefix / "bin" / "troupe", "run", "?", "--model", f"mock/{script}")
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Agents that call agents, with real sandboxes; and what must be allowed before it is done."""
import json
import subprocess
import unittest

from support import PATIENCE, TROUPE, TroupeTest, clean_environment, results

CHILD = """name: search
description: Looks one thing up.
kind: tool
limits:
  max_steps: 3
"""

CODER = """name: adder
description: Adds numbers with Python.
"""


def code(text):
    return f"Thought: go.\n<code>\n{text}\n</code>"


def answer(value):
    return {"tool_calls": [{"name": "final_answer", "arguments": {"answer": value}}]}


def call(name, **arguments):
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


class Teams(TroupeTest):
    def mock(self, rules, default):
        self.write("mock.json", json.dumps({"rules": rules, "default": default}))
        return "mock/mock.json"

    def test_code_in_a_sandbox_calls_agents_at_once(self):
        self.write("search.yaml", CHILD)
        self.write("manager.yaml", "name: manager\nchildren: [search.yaml]\n")
        both = ("from concurrent.futures import ThreadPoolExecutor\n"
                "with ThreadPoolExecutor() as pool:\n"
                "    found = list(pool.map(search, ['the first', 'the second']))\n"
                "final_answer(' | '.join(sorted(found)))")
        model = self.mock([{"if_task_contains": "the first", "reply": answer("one")},
                           {"if_task_contains": "the second", "reply": answer("two")}], code(both))
        done = self.troupe("run", "Find both.", "-a", "manager.yaml", "--model", model, "--out", "o.db")
        self.assertEqual((done.returncode, done.stdout), (0, "Report of 'search':\none | Report of 'search':\ntwo\n"),
                         done.stderr)
        self.assertIn("[search]", done.stderr)
        trace = self.troupe("trace", "o.db", "task").stdout
        self.assertEqual(trace.count("child_started  search, run "), 2, trace)
        self.assertEqual(trace.count("  |    "), trace.count("\n  |    "), trace)
        self.assertIn("the second", trace)

    def test_a_tool_calling_manager_has_an_agent_that_writes_code(self):
        self.write("adder.yaml", CODER)
        self.write("manager.yaml", "name: manager\nkind: tool\nchildren: [adder.yaml]\n")
        model = self.mock([{"if_task_contains": "You are 'adder'", "reply": code("final_answer(19 + 23)")},
                           {"if_last_contains": "42", "reply": answer("It is 42.")}],
                          call("adder", task="Add 19 and 23."))
        done = self.troupe("run", "How much?", "-a", "manager.yaml", "--model", model)
        self.assertEqual((done.returncode, done.stdout), (0, "It is 42.\n"), done.stderr)

    def test_a_child_may_have_a_model_and_an_address_of_its_own(self):
        self.write("small.json", json.dumps({"default": code("final_answer(19 + 23)")}))
        self.write("adder.yaml", CODER + "model: mock/small.json\n")
        self.write("manager.yaml", "name: manager\nkind: tool\nchildren: [adder.yaml]\n")
        model = self.mock([{"if_last_contains": "42", "reply": answer("It is 42.")}], call("adder", task="Add."))
        done = self.troupe("run", "How much?", "-a", "manager.yaml", "--model", model, "--record", "all.jsonl")
        self.assertEqual((done.returncode, done.stdout), (0, "It is 42.\n"), done.stderr)
        played = self.troupe("run", "How much?", "-a", "manager.yaml", "--model", model, "--replay", "all.jsonl")
        self.assertEqual((played.returncode, played.stdout), (0, "It is 42.\n"), played.stderr)
        self.write("adder.yaml", CODER + "model: mock/none.json\n")
        done = self.troupe("run", "How much?", "-a", "manager.yaml", "--model", model)
        self.assert_one_clear_line(done, "adder.yaml", "none.json")

    def test_agents_of_a_team_may_share_one_sandbox(self):
        self.write("loader.yaml", "name: loader\ndescription: Loads data.\n")
        self.write("summer.yaml", "name: summer\ndescription: Adds it up.\n")
        self.write("manager.yaml", "name: manager\nkind: tool\nshare_sandbox: true\nchildren: [loader.yaml, summer.yaml]\n")
        model = self.mock([
            {"if_task_contains": "You are 'loader'", "reply": code("data = [1, 2, 39]\nopen('seen', 'w').write('x')\n"
                                                                   "final_answer('loaded')")},
            {"if_task_contains": "You are 'summer'", "reply": code("final_answer(f\"{sum(data)} {open('seen').read()}\")")},
            {"if_last_contains": "42 x", "reply": answer("It is 42.")},
            {"if_last_contains": "loaded", "reply": call("summer", task="Add it up.")}],
            call("loader", task="Load it."))
        done = self.troupe("run", "How much?", "-a", "manager.yaml", "--model", model, "--out", "o.db")
        self.assertEqual((done.returncode, done.stdout), (0, "It is 42.\n"), done.stderr)
        done = self.troupe("eval", self.dataset(30), "-a", "manager.yaml", "--model", model, "--out", "b.db",
                           "--max-concurrency", "10", "--max-sandboxes", "3", timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / "b.db")], ["success"] * 30)

    def test_a_sandbox_that_cannot_be_shared_is_refused(self):
        self.write("loader.yaml", "name: loader\ndescription: Loads data.\nimports: [math]\n")
        self.write("summer.yaml", "name: summer\ndescription: Adds it up.\n")
        for kind, children, why in (("code", "loader.yaml", "writes code is itself at work"),
                                    ("tool", "loader.yaml, summer.yaml", "may not import the same"),
                                    ("tool", "search.yaml", "none of its agents writes code")):
            self.write("search.yaml", CHILD)
            self.write("manager.yaml", f"name: manager\nkind: {kind}\nshare_sandbox: true\nchildren: [{children}]\n")
            done = self.troupe("run", "?", "-a", "manager.yaml", "--model", self.mock([], "x"))
            self.assert_one_clear_line(done, "share_sandbox", why)

    def test_a_batch_of_teams_leaves_one_result_each_and_nothing_behind(self):
        self.write("adder.yaml", CODER)
        self.write("manager.yaml", "name: manager\nchildren: [adder.yaml]\n")
        model = self.mock([{"if_task_contains": "You are 'adder'", "reply": code("final_answer(19 + 23)")}],
                          code("final_answer(adder('Add 19 and 23.'))"))
        done = self.troupe("eval", self.dataset(40), "-a", "manager.yaml", "--model", model, "--out", "o.db",
                           "--max-concurrency", "10", "--max-sandboxes", "4", timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        ends = [end for _, _, end in results(self.folder / "o.db")]
        self.assertEqual(ends, ["success"] * 40)

    def test_what_is_the_same_for_a_team_is_not_a_childs(self):
        self.write("search.yaml", CHILD + "profile: tight\n")
        self.write("manager.yaml", "name: manager\nchildren: [search.yaml]\n")
        done = self.troupe("run", "?", "-a", "manager.yaml", "--model", self.mock([], "x"))
        self.assert_one_clear_line(done, "search.yaml, line 6", "profile", "the same for a whole team")
        self.write("search.yaml", "name: search\n")
        done = self.troupe("run", "?", "-a", "manager.yaml", "--model", self.mock([], "x"))
        self.assert_one_clear_line(done, "'search'", "needs a description")
        self.write("search.yaml", "name: print\ndescription: x\n")
        done = self.troupe("run", "?", "-a", "manager.yaml", "--model", self.mock([], "x"))
        self.assert_one_clear_line(done, "search.yaml, line 1", "'print' is a Python builtin")


class Approval(TroupeTest):
    def model(self):
        self.write("mock.json", json.dumps({
            "rules": [{"if_last_contains": "not run", "reply": code("final_answer('then not')")}],
            "default": code("print(6 * 7)\nfinal_answer(6 * 7)")}))
        return "mock/mock.json"

    def test_what_is_asked_for_is_done_once_it_is_allowed(self):
        done = self.troupe("run", "?", "--model", self.model(), "--approve", "ask", stdin="y\n")
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)
        self.assertIn("Allow it?", done.stderr)

    def test_a_refusal_and_its_reason_reach_the_model(self):
        done = self.troupe("run", "?", "--model", self.model(), "--approve", "ask", stdin="not today\ny\n")
        self.assertEqual((done.returncode, done.stdout), (0, "then not\n"), done.stderr)
        self.assertIn("the user did not allow it: not today", done.stderr)

    def test_nobody_to_ask_is_a_no(self):
        done = self.troupe("run", "?", "--model", self.model(), "--approve", "ask", "--max-steps", "2", stdin="")
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertIn("nobody is there to ask", done.stderr)

    def test_no_standard_input_at_all_is_a_no_too(self):
        done = subprocess.run(["sh", "-c", f"exec {TROUPE} run ? --model {self.model()} --approve ask --max-steps 2 <&-"],
                              cwd=self.folder, capture_output=True, text=True, timeout=60 * PATIENCE, check=False,
                              env=clean_environment())
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertIn("nobody is there to ask", done.stderr)

    def test_what_follows_an_options_value_is_the_task(self):
        done = self.troupe("run", "--approve", "auto", "--model", self.model(), "What is it?")
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"), done.stderr)

    def test_what_is_denied_is_not_done_and_a_batch_asks_nobody(self):
        done = self.troupe("run", "?", "--model", self.model(), "--approve", "deny", "--max-steps", "2")
        self.assertNotEqual(done.returncode, 0, done.stderr)
        done = self.troupe("eval", self.dataset(1), "--model", self.model(), "--approve", "ask", "--out", "o.db")
        self.assert_one_clear_line(done, "approve", "needs somebody to answer")
        done = self.troupe("run", "?", "--model", self.model(), "--approve", "deny", "--approve-for", "cod")
        self.assert_one_clear_line(done, "no tool 'cod'", "did you mean 'code'?")


if __name__ == "__main__":
    unittest.main()

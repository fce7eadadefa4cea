"""Agents as files: init writes one, run and eval take it, what is wrong is said before anything runs."""
import json
import unittest

from support import TroupeTest, results


class AgentFiles(TroupeTest):
    def model(self):
        return f"mock/{self.script()}"

    def test_init_writes_a_file_that_runs_and_overwrites_none(self):
        done = self.troupe("init")
        self.assertEqual((done.returncode, done.stdout), (0, "agent.yaml\n"), done.stderr)
        ran = self.troupe("run", "?", "-a", "agent.yaml", "--model", self.model())
        self.assertEqual((ran.returncode, ran.stdout), (0, "3\n"), ran.stderr)
        before = (self.folder / "agent.yaml").read_text()
        self.assert_one_clear_line(self.troupe("init"), "'agent.yaml' is there already")
        self.assertEqual((self.folder / "agent.yaml").read_text(), before)
        there = self.troupe("init", "team/")
        self.assertEqual(there.stdout, "team/agent.yaml\n", there.stderr)
        named = self.troupe("init", "solver.yaml")
        self.assertEqual(named.stdout, "solver.yaml\n", named.stderr)
        self.assert_one_clear_line(self.troupe("init", "--form", "x"), "did you mean '--from'?")

    def test_a_file_is_above_the_configuration_and_below_variables_and_flags(self):
        self.write("troupe.yaml", "max_steps: 2\nstep_time: 3s\nrun_time: 1m\n")
        self.write("a.yaml", "limits:\n  max_steps: 5\n  run_time: 2m\n  step_grace: 2s\n")
        done = self.troupe("run", "-a", "a.yaml", "--explain", "--step-grace", "4s", TROUPE_RUN_TIME="3m")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = {l.split()[0]: l.split(maxsplit=2)[1:] for l in done.stdout.splitlines()}
        self.assertEqual(said["max_steps"], ["5", "(a.yaml, line 2, column 14)"])
        self.assertEqual(said["step_time"], ["3s", "(troupe.yaml, line 2)"])
        self.assertEqual(said["run_time"], ["3m", "(TROUPE_RUN_TIME)"])
        self.assertEqual(said["step_grace"], ["4s", "(--step-grace)"])

    def test_its_prompts_reach_the_model_and_eval_takes_it_too(self):
        self.write("a.yaml", f"model: {self.model()}\nprompts:\n  system_prompt: |\n    A prompt of mine.\n")
        done = self.troupe("eval", self.dataset(2), "-a", "a.yaml", "--out", "o.db", "--record", "all.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / "o.db")], ["success"] * 2)
        self.assertIn("A prompt of mine.", (self.folder / "all.jsonl").read_text())

    def test_what_is_wrong_is_said_in_one_line_before_anything_runs(self):
        def refused(text, *parts):
            self.write("bad.yaml", text)
            done = self.troupe("run", "?", "-a", "bad.yaml", "--model", self.model(), "--out", "never.db")
            self.assert_one_clear_line(done, "bad.yaml, line ", *parts)
            self.assertFalse((self.folder / "never.db").exists())

        refused("kind: tool\ntools: [convert_unit]\n", "line 2, column 8", "tools", "did you mean 'convert_units'?")
        refused("nmae: x\n", "line 1, column 1", "unknown key 'nmae' (did you mean 'name'?)")
        refused("name: lambda\n", "is a Python keyword")
        refused("limits: {max_steps: 0}\n", "line 1, column 21", "max_steps", "from 1")
        refused("prompts:\n  system_prompt: |\n    one\n    {{tsk}}\n", "line 2", "system_prompt, line 2",
                "unknown name 'tsk' (did you mean 'task'?)")
        refused("prompts:\n  final_answer:\n    pre_messages: '{% if %}'\n", "line 3", "final_answer.pre_messages")
        refused("children: [bad.yaml]\n", "line 1, column 12", "cyclic team: bad.yaml -> bad.yaml")
        refused("children: [none.yaml]\n", "none.yaml: No such file")
        self.write("child.yaml", "children: [bad.yaml]\n")
        self.write("bad.yaml", "children: [child.yaml]\n")
        done = self.troupe("run", "?", "-a", "bad.yaml", "--model", self.model())
        self.assert_one_clear_line(done, "cyclic team: bad.yaml -> child.yaml -> bad.yaml")
        done = self.troupe("run", "?", "-a", "gone.yaml", "--model", self.model())
        self.assert_one_clear_line(done, "gone.yaml: No such file")

    def test_the_user_is_told_what_would_allow_an_import(self):
        self.write("a.yaml", "imports: [math]\n")
        model = self.script(code="import socket", rules=[
            {"if_last_contains": "not allowed", "reply": "<code>\nfinal_answer('without')\n</code>"}])
        done = self.troupe("run", "?", "-a", "a.yaml", "--model", f"mock/{model}")
        self.assertEqual((done.returncode, done.stdout), (0, "without\n"), done.stderr)
        hints = [l for l in done.stderr.splitlines() if "'socket'" in l and "--imports" in l]
        self.assertEqual(len(hints), 1, done.stderr)

    def test_an_agent_of_smolagents_is_carried_over_as_far_as_it_goes(self):
        saved = self.folder / "saved"
        saved.mkdir()
        (saved / "agent.json").write_text(json.dumps({
            "class": "ToolCallingAgent", "name": "finder", "tools": ["web_search", "final_answer"],
            "managed_agents": {}, "model": {"class": "LiteLLMModel", "data": {"model_id": "anthropic/claude-x"}},
            "prompt_templates": "prompts.yaml", "max_steps": 6, "verbosity_level": 1, "planning_interval": None}))
        (saved / "prompts.yaml").write_text("system_prompt: |-\n  Find {{custom_instructions}}\n")
        done = self.troupe("init", "mine", "--from", "saved")
        self.assertEqual((done.returncode, done.stdout), (0, "mine/finder.yaml\n"), done.stderr)
        self.assertIn("left out: saved: tools/web_search.py: ", done.stderr)
        shown = self.troupe("run", "-a", "mine/finder.yaml", "--explain").stdout
        self.assertIn("anthropic/claude-x", shown)
        self.assertRegex(shown, r"prompts +mine/finder.prompts.yaml")
        script = self.script(code="", **{"default": {"tool_calls": [
            {"name": "final_answer", "arguments": {"answer": "here"}}]}})
        ran = self.troupe("run", "?", "-a", "mine/finder.yaml", "--model", f"mock/{script}")
        self.assertEqual((ran.returncode, ran.stdout), (0, "here\n"), ran.stderr)
        self.assert_one_clear_line(self.troupe("init", "mine", "--from", "saved"), "is there already")
        self.assert_one_clear_line(self.troupe("init", "--from", "nowhere"), "nowhere/agent.json: No such file")


if __name__ == "__main__":
    unittest.main()

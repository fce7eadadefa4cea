// Official SDKs against `troupe mock`: run by mock_test.py as
//   node mock_judge.mjs <folder of node_modules> <case> <server's url>
// Ends with 0 and prints the names of what held; an assertion that does not hold ends it with 1.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, which, url] = process.argv.slice(2);
const require = createRequire(`${folder}/judge.js`);
const { default: OpenAI } = require("openai");
const { default: Anthropic } = require("@anthropic-ai/sdk");

const openai = (more = {}) => new OpenAI({ apiKey: "sk-test", baseURL: `${url}/v1`, maxRetries: 0, ...more });
const anthropic = (more = {}) => new Anthropic({ apiKey: "sk-ant", baseURL: url, maxRetries: 0, ...more });
const say = (content) => ({ model: "m", messages: [{ role: "user", content }] });
const ask = (content) => ({ ...say(content), max_tokens: 1000 });
const tools = [{ type: "function", function: { name: "add", parameters: { type: "object" } } }];

async function fails(promise, kind, status) {
  try {
    await promise;
  } catch (e) {
    assert.ok(e instanceof kind, `${e.constructor.name}: ${e.message}`);
    assert.equal(e.status, status);
    return e;
  }
  assert.fail(`expected ${kind.name}`);
}

const cases = {
  async chat() {
    const c = openai();
    const plain = await c.chat.completions.create(say("plain"));
    assert.equal(plain.choices[0].message.content, "A reply, with ünicode.");
    assert.equal(plain.choices[0].finish_reason, "stop");
    assert.ok(plain.usage.prompt_tokens > 0 && plain._request_id.startsWith("req_"));

    const pieces = [];
    let usage = null;
    for await (const chunk of await c.chat.completions.create(
      { ...say("plain"), stream: true, stream_options: { include_usage: true } })) {
      pieces.push(chunk.choices[0]?.delta?.content ?? "");
      usage = chunk.usage ?? usage;
    }
    assert.equal(pieces.join(""), "A reply, with ünicode.");
    assert.ok(pieces.filter((p) => p).length > 1);
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);

    const calls = (await c.chat.completions.create({ ...say("tools"), tools })).choices[0];
    assert.equal(calls.finish_reason, "tool_calls");
    assert.deepEqual(calls.message.tool_calls.map((t) => JSON.parse(t.function.arguments)),
                     [{ a: 1, b: 2 }, { a: 3, b: 4 }]);
    const final = await c.chat.completions.stream({ ...say("tools"), tools }).finalChatCompletion();
    assert.equal(final.choices[0].message.tool_calls[1].function.arguments, '{"a":3,"b":4}');

    const sums = [];
    const add = { type: "function", function: { name: "add", description: "adds", parse: JSON.parse,
      parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
      function: ({ a, b }) => { sums.push(a + b); return String(a + b); } } };
    const answer = await c.chat.completions.runTools({ ...say("tools"), tools: [add] }).finalContent();
    assert.deepEqual(sums, [3, 7]);
    assert.equal(answer, "The sums are there.");
  },

  async responses() {
    const c = openai();
    const first = await c.responses.create({ model: "m", input: "plain" });
    assert.equal(first.output_text, "A reply, with ünicode.");
    assert.equal(first.status, "completed");
    const types = [];
    const stream = c.responses.stream({ model: "m", input: "tools" });
    for await (const event of stream)
      types.push(event.type);
    const final = await stream.finalResponse();
    const calls = final.output.filter((o) => o.type === "function_call");
    assert.deepEqual(calls.map((o) => o.arguments), ['{"a":1,"b":2}', '{"a":3,"b":4}']);
    assert.equal(types[0], "response.created");
    assert.equal(types.at(-1), "response.completed");
    const next = await c.responses.create({ model: "m", previous_response_id: final.id,
      input: calls.map((o) => ({ type: "function_call_output", call_id: o.call_id, output: "3" })) });
    assert.equal(next.output_text, "The sums are there.");
    const cut = await c.responses.create({ model: "m", input: "plain", max_output_tokens: 1 });
    assert.equal(cut.status, "incomplete");
    assert.equal(cut.incomplete_details.reason, "max_output_tokens");
    const thought = await c.responses.stream({ model: "m", input: "think" }).finalResponse();
    assert.equal(thought.output[0].summary[0].text, "Hm, let me see.");
    assert.equal(thought.output_text, "Thought.");
  },

  async messages() {
    const c = anthropic();
    const plain = await c.messages.create(ask("plain"));
    assert.deepEqual(plain.content, [{ type: "text", text: "A reply, with ünicode." }]);
    assert.equal(plain.stop_reason, "end_turn");
    assert.ok(plain._request_id.startsWith("req_"));
    const streamed = await c.messages.stream(ask("plain")).finalMessage();
    assert.equal(streamed.content[0].text, "A reply, with ünicode.");
    assert.equal(streamed.usage.output_tokens, plain.usage.output_tokens);
    for (const m of [await c.messages.create(ask("tools")), await c.messages.stream(ask("tools")).finalMessage()]) {
      assert.equal(m.stop_reason, "tool_use");
      const uses = m.content.filter((b) => b.type === "tool_use");
      assert.deepEqual(uses.map((b) => b.input), [{ a: 1, b: 2 }, { a: 3, b: 4 }]);
      assert.ok(uses.every((b) => b.id.startsWith("toolu_")));
      const next = await c.messages.create({ ...ask("tools"), messages: [
        { role: "user", content: "tools" }, { role: "assistant", content: m.content },
        { role: "user", content: uses.map((b) => ({ type: "tool_result", tool_use_id: b.id, content: "3" })) }] });
      assert.equal(next.content[0].text, "The sums are there.");
    }
    const thought = await c.messages.stream(ask("think")).finalMessage();
    assert.equal(thought.content[0].thinking, "Hm, let me see.");
    assert.ok(thought.content[0].signature.length > 0);
    const stopped = await c.messages.create({ ...ask("plain"), stop_sequences: [", with"] });
    assert.equal(stopped.stop_reason, "stop_sequence");
    assert.equal(stopped.stop_sequence, ", with");
  },

  async errors() {
    const c = openai(), a = anthropic();
    const limited = await fails(c.chat.completions.create(say("429")), OpenAI.RateLimitError, 429);
    assert.equal(limited.code, "rate_limit_exceeded");
    assert.equal(limited.headers.get("retry-after-ms"), "20");
    await fails(c.chat.completions.create(say("500")), OpenAI.InternalServerError, 500);
    await fails(c.chat.completions.create(say("401")), OpenAI.AuthenticationError, 401);
    await fails(c.chat.completions.create({ model: "m" }), OpenAI.BadRequestError, 400);
    await fails(c.chat.completions.create({ ...say("x"), model: "unknown" }), OpenAI.NotFoundError, 404);
    await fails(c.post("/nothing"), OpenAI.NotFoundError, 404);
    await fails(c.chat.completions.create(say("reset")), OpenAI.APIConnectionError, undefined);
    await fails(a.messages.create(ask("429")), Anthropic.RateLimitError, 429);
    await fails(a.messages.create({ model: "m", messages: [] }), Anthropic.BadRequestError, 400);
    await fails(a.messages.create(ask("reset")), Anthropic.APIConnectionError, undefined);
    const over = await fails(a.messages.create(ask("529")), Anthropic.APIError, 529);
    assert.equal(over.error.error.type, "overloaded_error");
    assert.deepEqual((await c.models.list()).data.map((m) => m.id), ["m"]);
    assert.equal((await a.models.list()).data[0].id, "m");
  },

  /// The server turns away the first of each three requests.
  async retries() {
    const c = openai({ maxRetries: 2 });
    const first = await c.chat.completions.create(say("plain"));
    assert.equal(first.choices[0].message.content, "A reply, with ünicode.");
    await c.chat.completions.create(say("plain"));
    const a = anthropic({ maxRetries: 2 });
    assert.equal((await a.messages.create(ask("plain"))).stop_reason, "end_turn");
  },

  /// The server has one request a minute.
  async limits() {
    const { response } = await openai().chat.completions.create(say("plain")).withResponse();
    assert.equal(response.headers.get("x-ratelimit-remaining-requests"), "0");
    const e = await fails(openai().chat.completions.create(say("plain")), OpenAI.RateLimitError, 429);
    assert.ok(Number(e.headers.get("retry-after")) > 50);
    const b = await fails(anthropic().messages.create(ask("plain")), Anthropic.RateLimitError, 429);
    assert.ok(Date.parse(b.headers.get("anthropic-ratelimit-requests-reset")) > Date.now());
  },

  /// The server sends an error event in the middle of every stream.
  async broken() {
    await fails(openai().chat.completions.stream(say("plain")).finalChatCompletion(), OpenAI.APIError, undefined);
    await fails(anthropic().messages.stream(ask("plain")).finalMessage(), Anthropic.APIError, undefined);
  },
};

await cases[which]();
console.log(`${which} held`);

// Reads a server with the official OpenAI client and prints one JSON object.
const { OpenAI } = require("openai");

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const hello = [{ role: "user", content: "hello there" }];
const counted = { stream: true, stream_options: { include_usage: true } };

async function read(stream, textOf) {
  const out = { text: "", events: 0, reason: null };
  for await (const chunk of stream) {
    if (chunk.usage) {
      out.prompt = chunk.usage.prompt_tokens;
      out.completion = chunk.usage.completion_tokens;
    }
    for (const choice of chunk.choices) {
      out.events++;
      out.text += textOf(choice) || "";
      out.reason = choice.finish_reason || out.reason;
    }
  }
  return out;
}

async function failure(body, options) {
  try {
    const answer = await client.completions.create({ model: "m", prompt: "x", ...body }, options);
    if (body.stream) for await (const _ of answer);
    return "none";
  } catch (e) {
    return e.constructor.name;
  }
}

async function main() {
  const out = { models: [] };
  for await (const m of await client.models.list()) out.models.push(m.id);
  const chat = { model: "m", messages: hello, max_tokens: 6, ignore_eos: true };
  const text = { model: "m", prompt: [1, 2, 3], max_tokens: 5, ignore_eos: true };
  out.chatStream = await read(await client.chat.completions.create({ ...chat, ...counted }), (c) => c.delta.content);
  out.stream = await read(await client.completions.create({ ...text, ...counted }), (c) => c.text);
  const c = await client.chat.completions.create(chat);
  out.chat = { text: c.choices[0].message.content, reason: c.choices[0].finish_reason, completion: c.usage.completion_tokens };
  const w = await client.completions.create(text);
  out.whole = { text: w.choices[0].text, reason: w.choices[0].finish_reason, completion: w.usage.completion_tokens };
  out.errors = [
    await failure({ model: "x" }),
    await failure({ n: 2 }),
    await failure({}, { headers: { "X-Planner-Fault": "error=429" } }),
    await failure({ stream: true }, { headers: { "X-Planner-Fault": "event=2" } }),
  ];
  console.log(JSON.stringify(out));
}

main();

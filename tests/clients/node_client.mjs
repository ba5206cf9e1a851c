// What the real OpenAI SDK for Node sees. Prints one JSON object: what came back, scenario by scenario.
import { createRequire } from "node:module";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const OpenAI = require("openai");

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 2 });
const words = (n) => Array(n).fill("w").join(" ");
const say = (content, role = "user") => ({ role, content });

const scenarios = {
  async plain() {
    const { data, response } = await client.chat.completions
      .create({ model: "demo-small", messages: [say("good morning")] })
      .withResponse();
    return {
      text: data.choices[0].message.content,
      usage: data.usage.prompt_tokens,
      tokens: response.headers.get("x-bastion-context-tokens"),
    };
  },
  async streamed() {
    const stream = await client.chat.completions.create({
      model: "demo-small",
      messages: [say("good morning")],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage = null;
    let chunks = 0;
    for await (const chunk of stream) {
      chunks += 1;
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    return { text, usage: usage.prompt_tokens, several: chunks > 3 };
  },
  async tools() {
    const tools = [{ type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } }];
    const first = await client.chat.completions.create({
      model: "demo-medium",
      messages: [say("what time is it")],
      tools,
      tool_choice: "required",
    });
    const call = first.choices[0].message.tool_calls[0];
    const second = await client.chat.completions.create({
      model: "demo-medium",
      messages: [
        say("what time is it"),
        first.choices[0].message,
        { role: "tool", tool_call_id: call.id, content: "noon" },
      ],
      tools,
    });
    return { called: call.function.name, text: second.choices[0].message.content };
  },
  async truncated() {
    const { response } = await client.chat.completions
      .create({
        model: "demo-small",
        max_tokens: 10,
        messages: [say("be brief", "system"), say(words(50)), say("sure", "assistant"), say("and now")],
      })
      .withResponse();
    return { truncated: response.headers.get("x-bastion-context-truncated") };
  },
  async overflow() {
    try {
      await client.chat.completions.create({ model: "demo-small", messages: [say(words(100))] });
      return { error: null };
    } catch (error) {
      return { error: error.constructor.name, status: error.status, code: error.code, message: error.message };
    }
  },
  async models() {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    return { names };
  },
};

const seen = {};
for (const [name, scenario] of Object.entries(scenarios)) seen[name] = await scenario();
console.log(JSON.stringify(seen));

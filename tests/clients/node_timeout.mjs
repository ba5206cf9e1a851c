// One call to a provider that is too slow: the SDK must see our 504, and not try again.
import { createRequire } from "node:module";

const OpenAI = createRequire(new URL("../node/package.json", import.meta.url))("openai");
const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 3 });
try {
  await client.chat.completions.create({ model: "small", messages: [{ role: "user", content: "x" }] });
  console.log(JSON.stringify({ error: null }));
} catch (error) {
  console.log(JSON.stringify({ error: error.constructor.name, status: error.status }));
}

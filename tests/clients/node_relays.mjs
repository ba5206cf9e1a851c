// The OpenAI SDK for Node on the relayed routes: prints what it saw as one JSON object.
import { createRequire } from "node:module";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const OpenAI = require("openai").default;
const { toFile } = require("openai");
const [, , baseURL, apiKey] = process.argv;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = {};

seen.responses = (await client.responses.create({ model: "large", input: "hi" })).output_text;
const embedded = await client.embeddings.create({ model: "large", input: ["hi"], encoding_format: "float" });
seen.embedding = embedded.data[0].embedding;
const file = await toFile(Buffer.alloc(10_000, 7), "a.wav");
seen.transcription = (await client.audio.transcriptions.create({ model: "large", file })).text;
const speech = await client.audio.speech.create({ model: "large", voice: "alloy", input: "hi" });
seen.speech = (await speech.arrayBuffer()).byteLength;
try {
  await client.chat.completions.create({ model: "large", messages: [{ role: "user", content: "hi" }] });
} catch (error) {
  seen.overflow = { error: error.constructor.name, code: error.code };
}
console.log(JSON.stringify(seen));

// The stream of views. fetch instead of EventSource, because only fetch can send a bearer token.

const TOKEN = "kfleet-token";
const PAUSES = [1000, 2000, 4000, 8000];
const SILENCE = 45000;

/** The token stays in this tab, and is not sent by itself as a cookie would be. */
export function token() {
  return sessionStorage.getItem(TOKEN) || "";
}

export function setToken(text) {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
}

/** Follow the stream for ever: `onEvent(name, data)`, and `onState("open" | "lost" | "denied", facts)`. */
export async function follow(onEvent, onState, asked) {
  for (let failures = 0; ; ) {
    try {
      const status = await once(onEvent, onState);
      failures = 0;
      if (status === "denied") await asked();
      else await pause(PAUSES[0]);
    } catch {
      onState("lost");
      await pause(PAUSES[Math.min(failures, PAUSES.length - 1)]);
      failures += 1;
    }
  }
}

async function once(onEvent, onState) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const stopped = new AbortController();
  const answer = await fetch("api/events", { headers, cache: "no-store", signal: stopped.signal });
  if (answer.status === 401 || answer.status === 403) {
    onState("denied", { status: answer.status, why: (await answer.text()).trim(), hadToken: Boolean(token()) });
    return "denied";
  }
  if (!answer.ok) throw new Error(await answer.text());
  onState("open");
  return read(answer.body.getReader(), stopped, onEvent);
}

async function read(reader, stopped, onEvent) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const timer = setTimeout(() => stopped.abort(), SILENCE);
    const { value, done } = await reader.read().finally(() => clearTimeout(timer));
    if (done) throw new Error("the server ended the stream");
    text += decoder.decode(value, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const [name, data] = parsed(part);
      if (name === "denied") {
        // A new request decides: a proxy may send a newer token with it, or the manager may answer again.
        stopped.abort();
        return "ended";
      }
      if (name) onEvent(name, data);
    }
  }
}

function parsed(part) {
  const found = /^event: (.*)\ndata: (.*)$/.exec(part);
  return found ? [found[1], JSON.parse(found[2])] : ["", null];
}

function pause(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}

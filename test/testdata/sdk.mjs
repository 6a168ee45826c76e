// Speaks to a Rouse server through OpenCode's own SDK: node sdk.mjs v1|v2 URL
// TOKEN DIRECTORY. Throws at the first thing that is not as it should be.
import assert from "node:assert/strict"

const [, , version, baseUrl, token, directory] = process.argv
const { createOpencodeClient } = await import(version === "v2" ? "@opencode-ai/sdk/v2" : "@opencode-ai/sdk")
const client = createOpencodeClient({
  baseUrl,
  directory,
  headers: { Authorization: "Basic " + Buffer.from("opencode:" + token).toString("base64") },
})

// The second client takes flat parameters, the first one path, body and query.
const flat = version === "v2"
const at = (id, body, query) => (flat ? { sessionID: id, ...body, ...query } : { path: { id }, body, query })

async function ok(promise) {
  const { data, error, response } = await promise
  assert.equal(error, undefined, JSON.stringify(error))
  return { data, response }
}

const text = (s) => ({ parts: [{ type: "text", text: s }] })
const model = (modelID) => ({ model: { providerID: "drill", modelID } })

// Events are followed from the beginning.
const events = []
const waiting = new Set()
const stop = new AbortController()
const stream = flat ? await client.event.subscribe({}, { signal: stop.signal }) : await client.event.subscribe({ signal: stop.signal })
const reading = (async () => {
  for await (const e of stream.stream) {
    events.push(e)
    for (const w of waiting) w()
  }
})().catch((e) => {
  if (!stop.signal.aborted) throw e
})

function seen(fits, what) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("waited in vain for " + what + "; got " + events.map((e) => e.type).join(" "))), 30000)
    const look = () => {
      const hit = events.find(fits)
      if (!hit) return
      clearTimeout(timer)
      waiting.delete(look)
      resolve(hit)
    }
    waiting.add(look)
    look()
  })
}

await seen((e) => e.type === "server.connected", "server.connected")

// create
const { data: session } = await ok(client.session.create(flat ? { title: "From the SDK" } : { body: { title: "From the SDK" } }))
assert.match(session.id, /^ses_/)
assert.equal(session.directory, directory)
assert.equal(session.title, "From the SDK")
await seen((e) => e.type === "session.created" && e.properties.info.id === session.id, "session.created")

// prompt, synchronous
const { data: answer } = await ok(client.session.prompt(at(session.id, { ...model("echo"), ...text("hello") })))
assert.equal(answer.info.role, "assistant")
assert.equal(answer.info.finish, "stop")
assert.equal(answer.parts.find((p) => p.type === "text").text, "hello")
await seen((e) => e.type === "session.idle" && e.properties.sessionID === session.id, "session.idle")
const deltas = events.filter((e) => e.type === "message.part.delta" && e.properties.sessionID === session.id)
assert.equal(deltas.map((e) => e.properties.delta).join(""), "hello")

// prompt in the background; its end comes as an event
events.length = 0
const { response } = await ok(client.session.promptAsync(at(session.id, { ...model("tool"), ...text("use it") })))
assert.equal(response.status, 204)
assert.match(response.headers.get("x-rouse-turn"), /^trn_/)
await seen((e) => e.type === "session.idle" && e.properties.sessionID === session.id, "session.idle")
const states = events.filter((e) => e.type === "message.part.updated" && e.properties.part.type === "tool").map((e) => e.properties.part.state.status)
assert.deepEqual([...new Set(states)], ["pending", "running", "completed"])

// messages, and paging through them
const { data: all } = await ok(client.session.messages(at(session.id)))
assert.equal(all.length, 5)
const { data: newest, response: page } = await ok(client.session.messages(at(session.id, undefined, { limit: 2 })))
assert.deepEqual(newest.map((m) => m.info.id), all.slice(3).map((m) => m.info.id))
const cursor = page.headers.get("x-next-cursor")
assert.ok(cursor)
const { data: older } = await ok(client.session.messages(at(session.id, undefined, { limit: 2, before: cursor })))
assert.deepEqual(older.map((m) => m.info.id), all.slice(1, 3).map((m) => m.info.id))

// status and abort
events.length = 0
await ok(client.session.promptAsync(at(session.id, { ...model("hang"), ...text("hang") })))
await seen((e) => e.type === "message.part.delta", "a delta")
const { data: status } = await ok(client.session.status())
assert.equal(status[session.id].type, "busy")
const { data: aborted } = await ok(client.session.abort(at(session.id)))
assert.equal(aborted, true)
await seen((e) => e.type === "session.error" && e.properties.error.name === "MessageAbortedError", "session.error")
const { data: idle } = await ok(client.session.status())
assert.equal(idle[session.id], undefined)

// a failure of the provider is in the answer, a mistake of the caller in error
const { data: failed } = await ok(client.session.prompt(at(session.id, { ...model("auth"), ...text("x") })))
assert.equal(failed.info.error.name, "APIError")
assert.equal(failed.info.error.data.statusCode, 401)
const refused = await client.session.prompt(at(session.id, { ...model("nope"), ...text("x") }))
assert.equal(refused.response.status, 400)
assert.equal(refused.error.name, "BadRequest")
const unknown = await client.session.get(at("ses_unknown"))
assert.equal(unknown.response.status, 404)

// a permission is answered while it is asked
events.length = 0
await ok(client.session.promptAsync(at(session.id, { ...model("permission"), ...text("ask") })))
const asked = await seen((e) => e.type === "permission.asked", "permission.asked")
if (flat) await ok(client.permission.reply({ requestID: asked.properties.id, reply: "once" }))
else await ok(client.postSessionIdPermissionsPermissionId({ path: { id: session.id, permissionID: asked.properties.id }, body: { response: "once" } }))
await seen((e) => e.type === "session.idle", "session.idle")

// what else clients look at
for (const [name, call] of [
  ["agents", client.app.agents()], ["config", client.config.get()], ["providers", client.config.providers()], ["path", client.path.get()],
  ["list", client.session.list()], ["commands", client.command.list()],
]) {
  const { data } = await ok(call)
  assert.ok(data, name)
}
await ok(client.session.update(at(session.id, { title: "Renamed" })))
const { data: removed } = await ok(client.session.delete(at(session.id)))
assert.equal(removed, true)
await seen((e) => e.type === "session.deleted", "session.deleted")

stop.abort()
await Promise.race([reading, new Promise((r) => setTimeout(r, 1000))])
process.exit(0)

/* The SDK starts `holdfast mcp` on a directory, and checks every answer against the schema of the protocol. */
'use strict'

const assert = require('node:assert')
const { execFileSync } = require('node:child_process')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')

const command = process.env.HOLDFAST
const directory = mkdtempSync(join(tmpdir(), 'holdfast-mcp-'))
const db = 'embedded:' + join(directory, 'db')

function holdfast(...args) {
  return execFileSync(command, [...args, '--db', db], { encoding: 'utf8' })
}

async function connect(...args) {
  const client = new Client({ name: 'holdfast-test', version: '1.0.0' })
  await client.connect(new StdioClientTransport({ command, args: ['mcp', '--db', db, ...args] }))
  return client
}

async function reads() {
  const client = await connect()
  assert.equal(client.getServerVersion().name, 'holdfast')
  const { tools } = await client.listTools()
  assert.ok(tools.length > 20)
  assert.ok(tools.every(tool => tool.annotations.readOnlyHint && tool.inputSchema.type === 'object'))
  const found = await client.callTool({ name: 'query', arguments: { table: 'orders', key: 'ann' } })
  assert.deepEqual(found.structuredContent, { items: [{ customer: 'ann', day: 1, total: 19.9 }] })
  const missing = await client.callTool({ name: 'get_item', arguments: { table: 'none', key: ['x'] } })
  assert.equal(missing.isError, true)
  await assert.rejects(client.callTool({ name: 'put_item', arguments: {} }), /without --write/)
  const { resources } = await client.listResources()
  assert.equal(resources[0].uri, 'holdfast://tables/orders')
  const { contents } = await client.readResource({ uri: resources[0].uri })
  assert.equal(JSON.parse(contents[0].text).TableName, 'orders')
  await client.ping()
  await client.close()
}

async function writes() {
  const client = await connect('--write')
  const put = await client.callTool({ name: 'put_item', arguments: { table: 'orders', item: { customer: 'ben', day: 2 } } })
  assert.equal(put.isError, false)
  await client.close()
  assert.match(holdfast('item', 'get', 'orders', 'ben', '2'), /"ben"/)
}

async function main() {
  holdfast('table', 'create', 'orders', '--key', 'customer:S,day:N', '-q')
  holdfast('item', 'put', 'orders', '{"customer":"ann","day":1,"total":19.9}')
  await reads()
  await writes()
  console.log('ok')
}

main().finally(() => rmSync(directory, { recursive: true, force: true })).catch(error => {
  console.error(error)
  process.exit(1)
})

// The echo server on the TypeScript SDK's 2.x packages, over Streamable HTTP: `… PORT`.
// Uses Node's HTTP server and JSON responses. Both eras are served as the SDK documents it: 2026-07-28
// by its handler (one server per request), older revisions by one transport per session.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

const inputSchema = z.object({ text: z.string() });

function echo() {
    const server = new McpServer({ name: 'echo', version: '1' });
    server.registerTool('echo', { description: 'Returns the text.', inputSchema }, async ({ text }) => ({
        content: [{ type: 'text', text }]
    }));
    return server;
}

const modern = toNodeHandler(createMcpHandler(echo));
const transports = new Map();

async function open() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        enableJsonResponse: true,
        onsessioninitialized: id => transports.set(id, transport)
    });
    await echo().connect(transport);
    return transport;
}

createServer(async (request, response) => {
    if (request.headers['mcp-protocol-version'] === '2026-07-28') {
        await modern(request, response);
        return;
    }
    const known = transports.get(request.headers['mcp-session-id']);
    await (known ?? (await open())).handleRequest(request, response);
}).listen(Number(process.argv[2]), '127.0.0.1');

// The echo server on the TypeScript SDK's 2.x packages, over Streamable HTTP: `… PORT`.
// Node's own HTTP server and JSON answers. Both eras, each as the SDK's documents serve it: 2026-07-28
// by its handler (a server a request), the older revisions by a transport a session.
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

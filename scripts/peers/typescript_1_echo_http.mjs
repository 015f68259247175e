// The echo server on the TypeScript SDK's 1.x package, over Streamable HTTP: `… PORT`.
// Uses Node's HTTP server, JSON responses (the faster mode) and one session.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const transports = new Map();

async function open() {
    const server = new McpServer({ name: 'echo', version: '1' });
    server.registerTool(
        'echo',
        { description: 'Returns the text.', inputSchema: { text: z.string() } },
        async ({ text }) => ({ content: [{ type: 'text', text }] })
    );
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        enableJsonResponse: true,
        onsessioninitialized: id => transports.set(id, transport)
    });
    await server.connect(transport);
    return transport;
}

createServer(async (request, response) => {
    const known = transports.get(request.headers['mcp-session-id']);
    await (known ?? (await open())).handleRequest(request, response);
}).listen(Number(process.argv[2]), '127.0.0.1');

// `typescript_1.mjs MODE TARGET`: the client of @modelcontextprotocol/sdk 1.x (MODE is unused).
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { run } from './steps.mjs';

await run(async target => {
    const client = new Client({ name: 'driver', version: '1' }, { capabilities: {} });
    const [command, ...args] = target.command ?? [];
    // Not every 1.x release has this module, so it is loaded only for HTTP.
    const { StreamableHTTPClientTransport } = target.url
        ? await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
        : {};
    const transport = target.url
        ? new StreamableHTTPClientTransport(new URL(target.url))
        : new StdioClientTransport({ command, args, env: { ...process.env, ...target.env } });
    // 1.x does not expose the negotiated version, so it is read from the `initialize` response.
    let version;
    const connected = client.connect(transport);
    const deliver = transport.onmessage;
    transport.onmessage = (message, ...rest) => {
        version ??= message.result?.protocolVersion;
        deliver(message, ...rest);
    };
    await connected;
    return { client, call: (params, options) => client.callTool(params, undefined, options), version: () => version };
});

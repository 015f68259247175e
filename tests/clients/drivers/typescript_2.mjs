// `typescript_2.mjs MODE TARGET`: the client of @modelcontextprotocol/client 2.x.
// MODE is "auto", "pin", or the date of a revision before 2026-07-28, the only one then offered.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { run } from './steps.mjs';

const MODES = {
    auto: { versionNegotiation: { mode: 'auto' } },
    pin: { versionNegotiation: { mode: { pin: '2026-07-28' } } }
};

await run(async (target, mode) => {
    const client = new Client({ name: 'driver', version: '1' }, MODES[mode] ?? { supportedProtocolVersions: [mode] });
    const [command, ...args] = target.command ?? [];
    await client.connect(
        target.url
            ? new StreamableHTTPClientTransport(new URL(target.url))
            : new StdioClientTransport({ command, args, env: { ...process.env, ...target.env } })
    );
    return {
        client,
        call: (params, options) => client.callTool(params, options),
        version: () => client.getNegotiatedProtocolVersion()
    };
});

// The steps of every TypeScript driver, shared by both major versions of the client.
import assert from 'node:assert/strict';

const TEXT = 'naïve 🧠 \u2028 text';

// `call(params, options)` is needed because 1.x takes a result schema between the two arguments.
export async function use(client, call) {
    const { tools } = await client.listTools();
    assert.ok(tools.some(tool => tool.name === 'echo'), 'echo is not in the list');

    const echoed = await call({ name: 'echo', arguments: { text: TEXT } });
    assert.equal(echoed.content[0].text, TEXT);

    let unknown;
    try {
        await call({ name: 'no_such_tool', arguments: {} });
    } catch (refusal) {
        unknown = refusal.code;
    }
    assert.ok([-32602, -32000].includes(unknown), `an unknown tool gave ${unknown}`);

    const failed = await call({ name: 'fail', arguments: { message: 'as asked' } });
    assert.equal(failed.isError, true);

    const seen = [];
    const steps = { name: 'slow', arguments: { seconds: 0.2, steps: 4 } };
    await call(steps, { onprogress: ({ progress }) => seen.push(progress) });
    assert.ok(seen.length >= 2, `progress was ${seen}`);
    assert.deepEqual(seen, [...new Set(seen)].sort((a, b) => a - b));

    await cancel(call);
    const after = await call({ name: 'echo', arguments: { text: 'after' } });
    assert.equal(after.content[0].text, 'after');
    return { tools: tools.length, unknown, progress: seen.length };
}

async function cancel(call) {
    const tally = async () => JSON.parse((await call({ name: 'tally', arguments: {} })).content[0].text);
    const before = await tally();
    const abort = new AbortController();
    const long = { name: 'slow', arguments: { seconds: 60, steps: 600 } };
    await assert.rejects(call(long, { signal: abort.signal, onprogress: () => abort.abort('test') }));
    const deadline = Date.now() + 5000;
    while ((await tally()).cancelled === before.cancelled) {
        assert.ok(Date.now() < deadline, 'the cancelled call went on');
        await new Promise(resolve => setTimeout(resolve, 10));
    }
}

export async function run(connect) {
    const giveUp = setTimeout(() => { console.error('took longer than 40 s'); process.exit(3); }, 40_000);
    const { client, call, version } = await connect(JSON.parse(process.argv[3]), process.argv[2]);
    const report = { version: version(), ...(await use(client, call)) };
    const leaving = performance.now();
    await client.close();
    report.exit_seconds = Math.round(performance.now() - leaving) / 1000;
    console.log(JSON.stringify(report));
    clearTimeout(giveUp);
}

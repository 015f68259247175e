// Connect: a first run that stores and finds one memory, and for each client its file, entry and a test.
import { html, useState, changed, enc, inBank, memoryLink, plural, post, useGet, Act, Chip, Field, Head, Line, Loaded, Text, notify } from "./ui.js";

function FirstRun({ bank }) {
	const [text, setText] = useState("The release train leaves every Thursday at ten");
	const [query, setQuery] = useState("when do we release?");
	const [stored, setStored] = useState(null);
	const [found, setFound] = useState(null);
	const store = async () => {
		const done = await post(inBank(bank, "/memories"), { text, source: "web" });
		setStored(done);
		changed(bank);
	};
	const search = async () => setFound(await post(inBank(bank, "/search"), { query, limit: 3 }));
	const isFound = found?.hits.some((hit) => hit.memory.id === stored?.memory.id);
	return html`<section class="card"><h2>First run</h2><p class="soft">Store one memory, then find it with other words.</p>
		<div class="steps"><div><${Field} label="1. A memory"><textarea rows="2" value=${text} onInput=${(e) => setText(e.target.value)} /><//>
			<div class="row"><${Act} kind="main" disabled=${!text.trim()} run=${store}>Store<//>${stored && html`<span class="good-note" role="status">${stored.known ? "It was stored before." : "Stored."} <a href=${memoryLink(stored.memory, bank)}>Open it</a></span>`}</div></div>
		<div><${Text} label="2. A question" value=${query} set=${setQuery} />
			<div class="row"><${Act} kind="main" disabled=${!query.trim()} run=${search}>Find<//>${found && html`<span role="status" class=${isFound ? "good-note" : ""}>${isFound ? "Found it. Your agents search in the same way." : `${plural(found.hits.length, "hit")}.`}</span>`}</div></div></div>
		${found && html`<ul class="list">${found.hits.map((hit) => html`<${Line} key=${hit.memory.id} memory=${hit.memory} bank=${bank} note=${`score ${hit.score.toFixed(2)}`} />`)}</ul>`}</section>`;
}

function Client({ client }) {
	const [proof, setProof] = useState(null);
	const copy = (text) => async () => (await navigator.clipboard.writeText(text), notify("Copied."));
	const test = async () => setProof(await post(`/setup/${enc(client.name)}/test`));
	const state = client.is_connected ? ["good", "connected"] : client.is_installed ? ["wait", "installed, not connected"] : ["", "not found"];
	return html`<details class="card" open=${client.is_installed}><summary><h2>${client.title}</h2> <${Chip} kind=${state[0]}>${state[1]}<//></summary>
		<p>Connect it with <code>recalld setup ${client.name}</code>, or write this entry yourself:</p>
		${client.files.map((file) => html`<p class="soft"><code>${file.path}</code>: ${file.state}${file.detail && html` (${file.detail})`}</p>`)}
		<pre tabindex="0" aria-label=${`Entry for ${client.title}`}>${client.entry}</pre>
		${client.note && html`<p class="soft">${client.note}.</p>`}
		<div class="row"><${Act} run=${copy(client.entry)}>Copy<//><${Act} kind="main" run=${test} aria-label=${`Test the connection of ${client.title}`}>Test it<//>
			${proof && html`<span role="status" class=${proof.fault ? "warn" : "good-note"}>${proof.fault || `The entry started in ${proof.seconds.toFixed(1)} s and offers ${plural(proof.tools, "tool")}.`}</span>`}</div></details>`;
}

export default function Connect({ bank }) {
	const found = useGet("/setup");
	return html`<${Head} title="Connect" about="Give your agents this memory."><//><${FirstRun} bank=${bank} />
		<${Loaded} from=${found}>${(data) => [...data.clients].sort((a, b) => b.is_installed - a.is_installed).map((it) => html`<${Client} key=${it.name} client=${it} />`)}<//>`;
}

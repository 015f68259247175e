// Sources: health, sync with live progress, withheld deletions, failures and documents.
import { html, useEffect, useState, ago, changed, del, enc, get, headline, inBank, memoryLink, number, plural, post, useEvents, useGet, useLoad, webAddress, Act, Button, Chip, Dialog, Empty, Head, Loaded } from "./ui.js";

const COUNTS = ["added", "changed", "moved", "deleted", "unchanged", "skipped", "failed"];

function Documents({ source, bank, onClose }) {
	const [open, setOpen] = useState("");
	const found = useGet(inBank(bank, "/documents"), { source, limit: 100 });
	const chunks = useLoad((signal) => (open ? get(inBank(bank, `/documents/${enc(open)}/chunks`), {}, signal) : null), [open]);
	return html`<${Dialog} wide title=${`Documents of ${source}`} onClose=${onClose}><${Loaded} from=${found}>${(data) => html`
		${data.documents.length === 0 && html`<p>There are no documents yet.</p>`}
		<ul class="list">${data.documents.map((it) => html`<li class="line"><button type="button" class="plain" aria-expanded=${open === it.id} onClick=${() => setOpen(open === it.id ? "" : it.id)}>${it.title || it.source_id}</button>
			<div class="meta"><span>${plural(it.chunks, "chunk")}</span><span>${ago(it.indexed_at)}</span><span>${it.content_type}</span>${webAddress(it.url) && html`<a href=${webAddress(it.url)} rel="noreferrer noopener" target="_blank">original</a>`}</div>
			${open === it.id && chunks.data && html`<ol>${chunks.data.chunks.map((chunk) => html`<li><a href=${memoryLink(chunk, bank)}>${headline(chunk)}</a></li>`)}</ol>`}</li>`)}</ul>`}<//><//>`;
}

function Source({ source, onOpen, onChanged }) {
	const { running, outcome } = source;
	const path = `/sources/${enc(source.name)}`;
	const sync = (options) => async () => (await post(`${path}/sync`, options), onChanged());
	const remove = async () => {
		if (!confirm(`Remove the source ${source.name} and its documents from recalld? The original files stay.`)) return;
		await del(path);
		changed("");
		onChanged();
	};
	const state = running ? ["wait", "syncing"] : source.healthy ? ["good", "healthy"] : ["bad", "failing"];
	return html`<section class="card" aria-label=${source.name}><div class="row"><h2 class="grow">${source.name}</h2><${Chip} kind=${state[0]}>${state[1]}<//></div>
		<p class="soft">${source.kind}: ${source.place} → bank ${source.bank}${source.watch ? ", watched" : ""}${source.in_config_file ? ", from the configuration file" : ""}</p>
		${running && html`<p>${running.phase}: ${number(running.done)}${running.total ? ` of ${number(running.total)}` : ""}</p><progress aria-label="Progress" max=${running.total || 1} value=${running.total ? running.done : undefined} />`}
		${source.last_error && html`<p class="problem">${source.last_error}</p>`}
		<p>Last complete sync: ${source.last_sync ? ago(source.last_sync) : "never"}</p>
		${outcome && html`<div class="chips">${COUNTS.filter((name) => outcome[name]).map((name) => html`<${Chip} kind=${name === "failed" ? "bad" : ""}>${number(outcome[name])} ${name}<//>`)}</div>`}
		${source.withheld_deletions > 0 && html`<div class="notice"><p>${plural(source.withheld_deletions, "deletion")} withheld${outcome?.withheld_reason ? `: ${outcome.withheld_reason}` : ""}. An unmounted disk looks like this.</p>
			<${Act} kind="danger small" run=${sync({ allow_deletions: true })}>Apply up to ${plural(source.withheld_deletions, "deletion")}<//></div>`}
		${outcome?.problems?.length > 0 && html`<details><summary>${plural(outcome.problems.length, "problem")} with files</summary><ul>${outcome.problems.slice(0, 100).map((it) => html`<li><code>${it.path || it.file || it.name}</code> ${it.reason || it.text || ""}</li>`)}</ul></details>`}
		<div class="row end">${running ? html`<${Act} run=${async () => (await del(`${path}/sync`), onChanged())}>Cancel<//>` : html`<${Act} kind="main" run=${sync({})}>Sync now<//><${Act} run=${sync({ full: true })}>Full sync<//>`}
			<${Button} onClick=${onOpen}>Documents<//>${!source.in_config_file && html`<${Act} kind="danger" run=${remove}>Remove<//>`}</div></section>`;
}

export default function Sources() {
	const found = useGet("/sources");
	const [open, setOpen] = useState(null);
	const isRunning = found.data?.sources.some((it) => it.running);
	useEvents((e) => (e.type === "sync" || e.type === "change") && found.reload());
	useEffect(() => {
		const timer = setTimeout(found.reload, isRunning ? 700 : 10_000);
		return () => clearTimeout(timer);
	}, [found.data]);
	return html`<${Head} title="Sources" about="Folders, repositories and buckets that recalld indexes."><//>
		<${Loaded} from=${found}>${(data) => html`${data.sources.length === 0 && html`<${Empty} title="There are no sources yet"><p>A source is a folder whose documents your agents can search: <code>recalld source add notes ~/notes</code></p><//>`}
			<div class="cards wide">${data.sources.map((it) => html`<${Source} key=${it.name} source=${it} onOpen=${() => setOpen(it)} onChanged=${() => setTimeout(found.reload, 200)} />`)}</div>`}<//>
		${open && html`<${Documents} source=${open.name} bank=${open.bank} onClose=${() => setOpen(null)} />`}`;
}

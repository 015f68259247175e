// Cards, tasks, risks and skills that agents recorded, by status.
import { html, useState, ago, changed, enc, get, inBank, keepQuery, link, patch, useChanges, useLoad, Chip, Empty, Head, Loaded, Pick, notify } from "./ui.js";

const KINDS = [["cards", "Cards"], ["tasks", "Tasks"], ["risks", "Risks"], ["skills", "Skills"]];
const STATUSES = {
	cards: ["open", "in_progress", "resolved", "noted", "superseded"],
	tasks: ["pending", "in_progress", "completed", "cancelled"],
	risks: ["open", "mitigated", "closed", "accepted"],
};

function Entry({ kind, entry, bank, onChanged }) {
	const change = async (e) => {
		try {
			await patch(inBank(bank, `/${kind}/${enc(entry.id)}`), { status: e.target.value });
			changed(bank);
			notify("Saved.");
		} catch (error) {
			notify(error.message, { bad: true });
		}
		onChanged();
	};
	const level = entry.priority || entry.level;
	const statuses = STATUSES[kind] && [...new Set([entry.status, ...STATUSES[kind]])];
	return html`<article class="card" data-row><h3><a href=${link("memory", entry.id, { bank })} data-id=${entry.id}>${entry.title || entry.name}</a></h3>
		<p class="text small">${entry.summary || entry.detail}</p>
		${entry.mitigation && html`<p><b>Mitigation:</b> ${entry.mitigation}</p>`}
		${entry.methods?.length > 0 && html`<ol>${entry.methods.map((it) => html`<li>${it}</li>`)}</ol>`}
		${entry.triggers?.length > 0 && html`<p class="soft">When: ${entry.triggers.join("; ")}</p>`}
		${(entry.evidence || []).map((it) => html`<blockquote><p>${it.snippet}</p>${it.memory && html`<a href=${link("memory", it.memory, { bank })}>Source of this quotation</a>`}</blockquote>`)}
		<div class="meta">${kind === "cards" && html`<${Chip} kind=${entry.is_verified ? "good" : "wait"} title=${entry.is_verified ? "Stored memories contain the quotations" : "No stored memory contains the quotations"}>${entry.is_verified ? "verified" : "unverified"}<//>`}
			${level && html`<${Chip} kind=${["high", "urgent", "critical"].includes(level) ? "bad" : ""}>${level}<//>`}${entry.category && html`<span>${entry.category}</span>`}
			<span>${ago(entry.updated_at)}</span>${entry.source && html`<span>${entry.source}</span>`}${(entry.tags || []).map((tag) => html`<${Chip} kind="tag">${tag}<//>`)}</div>
		${statuses && html`<label class="row status">Status <select value=${entry.status} onChange=${change}>${statuses.map((it) => html`<option value=${it} selected=${it === entry.status}>${it.replaceAll("_", " ")}</option>`)}</select></label>`}</article>`;
}

export default function Knowledge({ bank, query }) {
	const [kind, setKind] = useState(query.get("kind") || "cards");
	const found = useLoad((signal) => get(inBank(bank, `/${kind}`), { limit: 200 }, signal).then((data) => ({ kind, entries: data[kind] })), [bank, kind]);
	useChanges(bank, found.reload);
	const pick = (name) => (setKind(name), keepQuery({ kind: name }));
	return html`<${Head} title="Knowledge"><//>
		<p><${Pick} label="Kind" value=${kind} options=${KINDS} onPick=${pick} /></p>
		<${Loaded} from=${found}>${(data) => {
			if (data.kind !== kind) return "";
			if (data.entries.length === 0) return html`<${Empty} title=${`There are no ${kind} yet`}><p>Agents record them with the tools of recalld.</p><//>`;
			const groups = new Map();
			for (const it of data.entries) groups.set(it.status, [...(groups.get(it.status) || []), it]);
			return [...groups].map(([status, entries]) => html`<section key=${status}>${status && html`<h2 class="status-head">${status.replaceAll("_", " ")} <small class="soft">${entries.length}</small></h2>`}
				<div class="cards">${entries.map((it) => html`<${Entry} key=${it.id} kind=${kind} entry=${it} bank=${bank} onChanged=${found.reload} />`)}</div></section>`);
		}}<//>`;
}

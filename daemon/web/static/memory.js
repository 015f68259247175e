// One memory: provenance, history, neighbours, evidence, similar ones; edit, forget and erase.
import { html, useEffect, useState, ago, changed, get, go, headline, keepQuery, link, memoryPath, number, patch, post, timeOf, useChanges, useGet, useLoad, Act, Button, Chip, Dialog, Field, Head, Kind, Line, Loaded, Problem, Tags, Text, forget, notify } from "./ui.js";

// "Stored by Claude Code over stdio in session …, 3 times."
function origin(memory) {
	const by = memory.provenance.client || (memory.provenance.principal && `the token ${memory.provenance.principal}`) || memory.source || "an unnamed client";
	const words = [`Stored by ${by}`];
	if (memory.provenance.transport) words.push(`over ${memory.provenance.transport}`);
	if (memory.provenance.dialect) words.push(`with the tools of ${memory.provenance.dialect}`);
	words.push(`on ${timeOf(memory.created_at)}`);
	if (memory.repeats > 1) words.push(`and ${number(memory.repeats)} times in all`);
	return words.join(" ");
}

const Fact = ({ name, children }) => children && html`<div><dt>${name}</dt><dd>${children}</dd></div>`;

function Editor({ bank, memory, onSaved, onClose }) {
	const [text, setText] = useState(memory.text);
	const [title, setTitle] = useState(memory.title);
	const [tags, setTags] = useState(memory.tags.join(", "));
	const [base, setBase] = useState(memory);
	const [theirs, setTheirs] = useState(null);
	const [error, setError] = useState(null);
	const [busy, setBusy] = useState(false);
	const path = memoryPath(bank, memory.id);
	const save = async (version) => {
		setBusy(true);
		setError(null);
		try {
			const list = tags.split(",").map((tag) => tag.trim()).filter(Boolean);
			const saved = await patch(path, { text, title, tags: list }, version);
			changed(bank);
			notify("Saved.");
			return onSaved(saved);
		} catch (failure) {
			if (failure.status === 409) setTheirs(await get(path).catch(() => null));
			else setError(failure);
		}
		setBusy(false);
	};
	const take = () => {
		setText(theirs.text);
		setTitle(theirs.title);
		setTags(theirs.tags.join(", "));
		setBase(theirs);
		setTheirs(null);
	};
	return html`<form class="card" onSubmit=${(e) => (e.preventDefault(), save(base.version))}>
		<${Text} label="Title" value=${title} set=${setTitle} />
		<${Field} label="Text"><textarea rows="10" required value=${text} ref=${(box) => box && !box.dataset.seen && ((box.dataset.seen = 1), box.focus())} onInput=${(e) => setText(e.target.value)} /><//>
		<${Text} label="Tags" hint="separated by commas" value=${tags} set=${setTags} />
		${error && html`<${Problem} error=${error} />`}
		${theirs && html`<div class="problem conflict" role="alert"><h2>Changed meanwhile</h2>
			<p>Somebody saved another version ${ago(theirs.updated_at)}, after you began to edit. Your text is still above; nothing was overwritten.</p>
			<h3>The stored version</h3>${theirs.title && html`<p><b>${theirs.title}</b></p>`}<pre tabindex="0">${theirs.text}</pre><p><${Tags} of=${theirs} /></p>
			<div class="row"><${Button} onClick=${take}>Take the stored version<//><${Button} kind="danger" onClick=${() => save(theirs.version)}>Save mine over it<//></div></div>`}
		<div class="row end"><${Button} onClick=${onClose}>Cancel<//><button class="button main" type="submit" disabled=${busy || !!theirs}>Save</button></div></form>`;
}

function Erase({ bank, memory, onClose }) {
	const [typed, setTyped] = useState("");
	const run = async () => {
		await post(memoryPath(bank, memory.id, "/erase"), { confirm: memory.id });
		changed(bank);
		notify("Erased.");
		onClose();
		go("memories", "", { bank });
	};
	return html`<${Dialog} title="Erase this memory" onClose=${onClose}>
		<p>Erasing removes the text, its words and its vector from all files of this bank and from the backups that recalld keeps. <b>It cannot be undone.</b></p>
		<p class="soft">It does not reach copies that left recalld: exports, backups that you moved elsewhere, snapshots of the disk, transcripts of clients, and answers that an agent has already received.</p>
		<${Text} label="Type erase to confirm" autocomplete="off" value=${typed} set=${setTyped} />
		<div class="row end"><${Button} onClick=${onClose}>Cancel<//><${Act} kind="danger" disabled=${typed.trim() !== "erase"} run=${run}>Erase for good<//></div><//>`;
}

function Part({ title, load, inputs, bank, children, empty }) {
	const found = useLoad(load, inputs);
	useChanges(bank, found.reload);
	return html`<section class="card"><h2>${title}</h2><${Loaded} from=${found}>${(data) => children(data) || html`<p class="soft">${empty}</p>`}<//></section>`;
}

const Lines = ({ of, bank }) => of.length > 0 && html`<ul class="list">${of.map((it) => html`<${Line} key=${it.id} memory=${it} bank=${bank} />`)}</ul>`;

function Details({ bank, memory }) {
	const path = (rest) => memoryPath(bank, memory.id, rest);
	const version = memory.version;
	const evidence = memory.details.evidence || [];
	return html`
		<${Part} title="History" bank=${bank} empty="Never changed." load=${(signal) => get(path("/history"), {}, signal)} inputs=${[memory.id, version]}>${(data) => html`
			<ul class="history">${data.entries.map((it) => html`<li><time datetime=${it.at}>${timeOf(it.at)}</time> <b>${it.what}</b>${it.by && html` by ${it.by}`}${it.text && html`<pre>${it.text}</pre>`}</li>`)}</ul>
			${data.superseded_by && html`<h3>Superseded by</h3><${Lines} of=${[data.superseded_by]} bank=${bank} />`}
			${data.supersedes?.length > 0 && html`<h3>Supersedes</h3><${Lines} of=${data.supersedes} bank=${bank} />`}`}<//>
		${evidence.length > 0 && html`<section class="card"><h2>Evidence</h2>${evidence.map((it) => html`<blockquote><p>${it.snippet}</p>${(it.item || it.memory) && html`<a href=${link("memory", it.item || it.memory, { bank })}>Open the memory that contains it</a>`}</blockquote>`)}</section>`}
		<${Part} title="Before and after" bank=${bank} empty="There are no neighbours." load=${(signal) => get(path("/neighbours"), {}, signal)} inputs=${[memory.id]}>${(data) =>
			data.before.length + data.after.length > 0 && html`<${Lines} of=${data.before} bank=${bank} /><p class="here">this memory</p><${Lines} of=${data.after} bank=${bank} />`}<//>
		<${Part} title="Similar" bank=${bank} empty="Nothing is similar enough, or the vector is still pending." load=${(signal) => get(path("/similar"), {}, signal)} inputs=${[memory.id, version]}>${(data) =>
			data.similar.length > 0 && html`<ul class="list">${data.similar.map((it) => html`<${Line} key=${it.memory.id} memory=${it.memory} bank=${bank} note=${`${Math.round(it.similarity * 100)} % alike`} />`)}</ul>`}<//>
		<details class="card"><summary><h2>Raw JSON</h2></summary><pre tabindex="0">${JSON.stringify(memory, null, 2)}</pre></details>`;
}

export default function Memory({ bank, arg, query }) {
	const found = useGet(memoryPath(bank, arg));
	const [isEditing, setEditing] = useState(query.get("edit") === "1");
	const [erases, setErases] = useState(false);
	useChanges(bank, () => isEditing || found.reload());
	useEffect(() => {
		const onKey = (e) => {
			if (e.target.matches("input, textarea, select") || e.ctrlKey || e.metaKey || document.querySelector("dialog[open]")) return;
			if (e.key === "e") e.preventDefault(), setEditing(true);
			if (e.key === "x" && found.data && !document.activeElement?.closest("[data-row]")) remove();
		};
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, [found.data]);
	const remove = async () => {
		await forget(bank, found.data);
		history.length > 1 ? history.back() : go("memories");
	};
	const close = () => {
		setEditing(false);
		keepQuery({ edit: "" });
	};
	if (found.error?.status === 404) {
		return html`<${Head} title="Memory" /><div class="empty"><h2>This memory is not here</h2><p>It was forgotten or erased, or is in another bank. “Undo …” brings back forgotten ones for a day.</p></div>`;
	}
	return html`<${Loaded} from=${found}>${(memory) => html`
		<${Head} title=${headline(memory).slice(0, 80)} about=${`${origin(memory)}.`}>
			${!isEditing && html`<${Button} onClick=${() => setEditing(true)}>Edit<//>`}
			<${Act} run=${remove}>Forget<//><${Button} kind="danger" onClick=${() => setErases(true)}>Erase …<//><//>
		${memory.superseded_by && html`<p class="notice">A newer memory replaces this one: <a href=${link("memory", memory.superseded_by, { bank })}>open it</a>.</p>`}
		${isEditing ? html`<${Editor} bank=${bank} memory=${memory} onClose=${close} onSaved=${(saved) => (found.set(saved), close())} />` : html`<article class="card text">${memory.text}</article>`}
		<dl class="facts card">
			<${Fact} name="Kind"><${Kind} of=${memory} /><//>
			<${Fact} name="When">${timeOf(memory.occurred_at)}<//>
			<${Fact} name="Changed">${memory.updated_at !== memory.created_at && timeOf(memory.updated_at)}<//>
			<${Fact} name="Tags">${memory.tags.length > 0 && html`<span class="chips">${memory.tags.map((tag) => html`<${Chip} kind="tag" href=${link("memories", "", { bank, tags: tag })}>${tag}<//>`)}</span>`}<//>
			<${Fact} name="Source">${memory.source && html`<a href=${link("memories", "", { bank, sources: memory.source })}>${memory.source}</a>`}<//>
			<${Fact} name="Session">${memory.session && html`<a href=${link("memories", "", { bank, session: memory.session })}>${memory.session}</a>`}<//>
			<${Fact} name="Category">${memory.category}<//><${Fact} name="Status">${memory.status}<//><${Fact} name="Role">${memory.role}<//>
			<${Fact} name="Confidence">${memory.confidence !== null && `${Math.round(memory.confidence * 100)} %`}<//>
			<${Fact} name="Context">${memory.context}<//><${Fact} name="Reason">${memory.provenance.explanation}<//>
			<${Fact} name="Document">${memory.document && html`<a href=${link("memories", "", { bank, document: memory.document })}>${memory.document}</a>`}<//>
			<${Fact} name="Id"><code>${memory.id}</code><//></dl>
		<${Details} bank=${bank} memory=${memory} />
		${erases && html`<${Erase} bank=${bank} memory=${memory} onClose=${() => setErases(false)} />`}`}<//>`;
}

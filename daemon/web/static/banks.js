// Banks: size, growth, check, backup, restore, import and export.
import { html, useState, changed, inBank, link, number, plural, post, size, timeOf, useChanges, useGet, Act, Button, Choice, Dialog, Field, Head, Loaded, Problem, Text, notify } from "./ui.js";
import { Area } from "./charts.js";

function Import({ bank, onClose }) {
	const [path, setPath] = useState("");
	const [file, setFile] = useState(null);
	const [kind, setKind] = useState("");
	const [secrets, setSecrets] = useState("skip");
	const [report, setReport] = useState(null);
	const choose = async (e) => {
		const given = e.target.files[0];
		setReport(null);
		setFile(given ? { name: given.name, text: await given.text() } : null);
	};
	const run = (dry_run) => async () => {
		const body = { dry_run, secrets, ...(kind ? { kind } : {}), ...(file || { path }) };
		const done = await post(inBank(bank, "/import"), body);
		setReport({ ...done, dry_run });
		if (!dry_run) changed(bank);
	};
	return html`<${Dialog} title=${`Import into ${bank}`} onClose=${onClose}>
		<${Field} label="A file or folder on the machine of the daemon" hint="an export of recalld, or data of another memory program"><input value=${path} disabled=${!!file} placeholder="/home/you/export.jsonl" onInput=${(e) => (setPath(e.target.value), setReport(null))} /><//>
		<${Field} label="Or a text file from this computer"><input type="file" onChange=${choose} /><//>
		<div class="two"><${Text} label="Kind" hint="as in recalld import --from; empty: by its content" value=${kind} set=${setKind} />
		<${Choice} label="Secrets in the text" value=${secrets} set=${setSecrets} options=${[["skip", "skip the memory"], ["redact"], ["keep"]]} /></div>
		${report && html`<div class=${report.dry_run ? "notice" : "card"} role="status"><b>${report.dry_run ? "A dry run: nothing was stored." : "Done."}</b>
			<p>${number(report.imported)} ${report.dry_run ? "would be imported" : "imported"}, ${number(report.known)} already known, ${number(report.rejected)} rejected${report.secrets.entries ? `, ${plural(report.secrets.entries, "entry", "entries")} with secrets` : ""}.</p>
			<ul>${report.reasons.map((it) => html`<li>${number(it.count)} × ${it.reason}</li>`)}</ul></div>`}
		<div class="row end"><${Button} onClick=${onClose}>Close<//><${Act} disabled=${!path && !file} run=${run(true)}>Dry run<//><${Act} kind="main" disabled=${!report?.dry_run} run=${run(false)}>Import<//></div><//>`;
}

function Backups({ bank, onClose }) {
	const found = useGet(inBank(bank, "/backups"));
	const make = async () => {
		const made = await post(inBank(bank, "/backups"));
		notify(`Backup made: ${made.path || made.name}, ${size(made.bytes)}.`);
		found.reload();
	};
	const restore = (name) => async () => {
		if (!confirm(`Replace the bank ${bank} by the backup ${name}? The present state is backed up first.`)) return;
		const done = await post(inBank(bank, "/restore"), { backup: name });
		changed(bank);
		notify(`Restored ${plural(done.items, "memory", "memories")}. The state before is a backup too.`);
		found.reload();
	};
	return html`<${Dialog} wide title=${`Backups of ${bank}`} onClose=${onClose}>
		<${Act} kind="main" run=${make}>Back up now<//>
		<${Loaded} from=${found}>${(data) => (data.backups.length === 0 ? html`<p>There are no backups yet.</p>` : html`<div class="scroll"><table class="data"><thead><tr><th>Made</th><th>Place</th><th>Size</th><th>Memories</th><th><span class="hidden">Restore</span></th></tr></thead>
			<tbody>${data.backups.map((it) => html`<tr><td>${timeOf(it.made_at)}</td><td><code>${it.path || it.name}</code></td><td class="num">${size(it.bytes)}</td><td class="num">${number(it.items)}</td><td><${Act} kind="small" run=${restore(it.name)}>Restore<//></td></tr>`)}</tbody></table></div>`)}<//><//>`;
}

function Bank({ bank, onOpen }) {
	const found = useGet(inBank(bank));
	const growth = useGet(inBank(bank, "/growth"), { days: 90 });
	const [checked, setChecked] = useState(null);
	useChanges(bank, () => (found.reload(), growth.reload()));
	const check = async () => setChecked(await post(inBank(bank, "/check")));
	const repair = async () => setChecked(await post(inBank(bank, "/repair")));
	return html`<section class="card" aria-label=${bank}><h2><a href=${link("memories", "", { bank })}>${bank}</a></h2>
		<${Loaded} from=${found}>${(data) => html`<dl class="facts three"><div><dt>Memories</dt><dd>${number(data.items)}</dd></div><div><dt>On disk</dt><dd>${size(data.disk_bytes)}${data.quota_bytes ? ` of ${size(data.quota_bytes)}` : ""}</dd></div><div><dt>Sessions</dt><dd>${number(data.sessions)}</dd></div>
			<div><dt>Documents</dt><dd>${number(data.documents)}</dd></div><div><dt>Forgotten</dt><dd>${number(data.forgotten)}</dd></div><div><dt>Pending vectors</dt><dd>${number(data.pending_vectors)}</dd></div></dl>
			${data.quota_bytes && html`<progress aria-label="Use of the quota" max=${data.quota_bytes} value=${data.disk_bytes} />`}`}<//>
		${growth.data && html`<${Area} title="Memories" points=${growth.data.days.map((it) => ({ label: it.date, value: it.total }))} />`}
		${growth.error && growth.error.status !== 404 && html`<${Problem} error=${growth.error} retry=${growth.reload} />`}
		${checked && html`<div role="status" class=${checked.problems.length ? "problem" : "good-note"}>${checked.problems.length === 0 ? `No problem found in ${plural(checked.items, "row")} and ${plural(checked.vectors, "vector")}.` : html`${checked.problems.map((it) => html`<p>${it.name} in ${it.part} (${it.count}): ${it.remedy}</p>`)}<${Act} run=${repair}>Repair<//>`}</div>`}
		<div class="row end"><${Act} run=${check}>Check<//><${Button} onClick=${() => onOpen("backups")}>Backups<//><${Button} onClick=${() => onOpen("import")}>Import<//></div></section>`;
}

export default function Banks({ banks }) {
	const [open, setOpen] = useState(null);
	const [name, setName] = useState("");
	const create = async () => {
		await post("/banks", { name });
		setName("");
		changed("");
		notify(`Created the bank ${name}.`);
	};
	const close = () => setOpen(null);
	const [isAll, setAll] = useState(false);
	return html`<${Head} title="Banks" about="Each bank is a separate memory."><label class="hidden" for="new-bank">Name of a new bank</label>
			<input id="new-bank" placeholder="new bank" value=${name} onInput=${(e) => setName(e.target.value)} /><${Act} kind="main" disabled=${!name.trim()} run=${create}>Create<//><//>
		<div class="cards">${banks.slice(0, isAll ? undefined : 24).map((it) => html`<${Bank} key=${it.name} bank=${it.name} onOpen=${(what) => setOpen({ what, bank: it.name })} />`)}</div>
		${banks.length > 24 && !isAll && html`<${Button} onClick=${() => setAll(true)}>All ${banks.length}<//>`}
		${open?.what === "backups" && html`<${Backups} bank=${open.bank} onClose=${close} />`}
		${open?.what === "import" && html`<${Import} bank=${open.bank} onClose=${close} />`}`;
}

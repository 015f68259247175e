// Many memories: a list of any length, selection, and operations on all that match, with one undo.
import { html, useCallback, useEffect, useMemo, useState, changed, get, headline, inBank, link, memoryLink, number, plural, post, useChanges, useGet, useLoad, Act, Button, Choice, Dialog, Empty, Head, Loaded, LongList, Meta, Problem, Text, notify, notifyUndo } from "./ui.js";
import { Facets, filtersFrom, keepFilters, whereOf } from "./filters.js";

const HEIGHT = 62;
const DONE = { forget: "Forgot", move: "Moved", tag: "Tagged", untag: "Untagged" };
const TITLES = { forget: "Forget", move: "Move to another bank", tag: "Add tags", untag: "Remove tags", export: "Export" };
const FORMATS = [["jsonl", "JSON lines"], ["markdown", "Markdown"], ["csv", "CSV"]];

function save(name, text) {
	const anchor = document.createElement("a");
	anchor.href = URL.createObjectURL(new Blob([text]));
	anchor.download = name;
	anchor.click();
	setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

function Operation({ action, bank, banks, target, onClose, onDone }) {
	const [to, setTo] = useState(banks.find((it) => it.name !== bank)?.name || "");
	const [tags, setTags] = useState("");
	const [format, setFormat] = useState("jsonl");
	const path = inBank(bank, "/bulk");
	const what = action === "export" ? "forget" : action;
	const list = tags.split(",").map((tag) => tag.trim()).filter(Boolean);
	// The preview of a move or a tag needs a valid target; a forget matches the same memories.
	const preview = useLoad((signal) => post(path, { ...target, action: "forget", dry_run: true }, { signal }), [bank]);
	const run = async () => {
		if (action === "export") {
			const found = await post(inBank(bank, "/export"), { ...target, format });
			save(found.name, found.text);
			notify(`Exported ${plural(found.count ?? preview.data.count, "memory", "memories")}.`);
			return onClose();
		}
		const more = action === "move" ? { to } : action === "forget" ? {} : { tags: list };
		const done = await post(path, { ...target, action: what, ...more, dry_run: false });
		notifyUndo(bank, done, `${DONE[action]} ${plural(done.count, "memory", "memories")}.`);
		changed(bank);
		if (action === "move") changed(to);
		onDone();
	};
	const isReady = preview.data && preview.data.count > 0 && (action !== "move" || to) && (!["tag", "untag"].includes(action) || list.length);
	return html`<${Dialog} title=${TITLES[action]} onClose=${onClose}>
		<${Loaded} from=${preview}>${(data) => html`<p><b>${plural(data.count, "memory", "memories")}</b> of the bank <b>${bank}</b>${data.count > (data.sample || []).length ? ", for example" : ""}:</p>
			<ul class="sample">${(data.sample || []).map((memory) => html`<li>${headline(memory)}</li>`)}</ul>`}<//>
		${action === "move" && html`<${Choice} label="To the bank" value=${to} set=${setTo} options=${banks.filter((it) => it.name !== bank).map((it) => [it.name])} />`}
		${action === "move" && banks.length < 2 && html`<p class="notice">There is no other bank. <a href=${link("banks")}>Create one</a> first.</p>`}
		${["tag", "untag"].includes(action) && html`<${Text} label="Tags" hint="separated by commas" value=${tags} set=${setTags} />`}
		${action === "export" && html`<${Choice} label="Format" value=${format} set=${setFormat} options=${FORMATS} />`}
		${action !== "export" && html`<p class="soft">One undo brings all of them back, for a day.</p>`}
		<div class="row end"><${Button} onClick=${onClose}>Cancel<//><${Act} kind=${action === "forget" ? "danger" : "main"} disabled=${!isReady} run=${run}>${TITLES[action]}<//></div><//>`;
}

export default function Memories({ bank, banks, query }) {
	const [filters, setFilters] = useState(filtersFrom(query));
	const [picked, setPicked] = useState(new Set());
	const [isAll, setAll] = useState(false);
	const [action, setAction] = useState("");
	const [version, setVersion] = useState(0);
	const where = useMemo(() => whereOf(filters) || {}, [filters]);
	const path = inBank(bank, "/memories");
	const count = useGet(path, { ...where, limit: 1 });
	useEffect(() => keepFilters(filters), [filters]);
	useEffect(() => (setPicked(new Set()), setAll(false)), [where]);
	useChanges(bank, () => (setVersion((n) => n + 1), count.reload()));
	const fetchPage = useCallback(
		async (offset, limit) => {
			const items = [];
			while (items.length < limit) {
				const page = await get(path, { ...where, limit: limit - items.length, offset: offset + items.length });
				items.push(...page.memories);
				if (!page.memories.length || offset + items.length >= page.total) break;
			}
			return items;
		},
		[path, where],
	);
	const toggle = (id) => {
		const next = new Set(picked);
		if (!next.delete(id)) next.add(id);
		setAll(false);
		setPicked(next);
	};
	const total = count.data?.total ?? 0;
	const chosen = isAll ? total : picked.size;
	const hasWhere = Object.keys(where).length > 0;
	// Without a condition, "all" is every memory from the beginning of time.
	const target = isAll ? { where: hasWhere ? where : { since: "0001-01-02" } } : { ids: [...picked] };
	return html`<${Head} title="Memories" about=${count.data ? `${plural(total, "memory", "memories")}${hasWhere ? " match" : ` in ${bank}`}` : ""}><//>
		<div class="split"><${Facets} bank=${bank} filters=${filters} onChange=${setFilters} withText />
		<section class="grow" aria-label="Memories">
			<div class="row actions" role="toolbar" aria-label="Operations on the selected memories">
				<label class="row"><input type="checkbox" checked=${isAll} indeterminate=${!isAll && picked.size > 0} disabled=${!total} onChange=${(e) => (setAll(e.target.checked), setPicked(new Set()))} />Select all ${number(total)}</label>
				<span class="grow soft" role="status">${chosen > 0 ? `${number(chosen)} selected` : ""}</span>
				${Object.keys(TITLES).map((name) => html`<${Button} kind="small ${name === "forget" ? "danger" : ""}" disabled=${!chosen} onClick=${() => setAction(name)}>${{ move: "Move", tag: "Tag", untag: "Untag" }[name] || TITLES[name]}<//>`)}</div>
			${count.error && html`<${Problem} error=${count.error} retry=${count.reload} />`}
			${count.data && total === 0 && html`<${Empty} title=${hasWhere ? "No memory matches" : "This bank is empty"}><p>${hasWhere ? "Remove a filter to see more." : html`<a href=${link("connect")}>Store the first one</a>`}</p><//>`}
			${total > 0 && html`<${LongList} total=${total} height=${HEIGHT} version=${`${version} ${JSON.stringify(where)}`} fetchPage=${fetchPage} label=${`${number(total)} memories`} row=${(memory) => html`
				<input type="checkbox" aria-label=${`Select: ${headline(memory).slice(0, 80)}`} checked=${isAll || picked.has(memory.id)} onChange=${() => toggle(memory.id)} />
				<div class="grow"><a href=${memoryLink(memory, bank)} data-id=${memory.id}>${headline(memory)}</a>
				<${Meta} of=${memory} /></div>`} />`}
		</section></div>
		${action && html`<${Operation} action=${action} bank=${bank} banks=${banks} target=${target} onClose=${() => setAction("")} onDone=${() => (setAction(""), setPicked(new Set()), setAll(false))} />`}`;
}

// Components that several screens share. Stored text becomes text nodes only.
import { html, useEffect, useLayoutEffect, useRef, useState, ago, changed, del, get, go, headline, keepUndo, memoryLink, memoryPath, plural, timeOf, undo, undoList } from "./core.js";
export * from "./core.js";

const PATHS = {
	search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m9 16-4-4",
	timeline: "M12 4v16M12 7h7M12 12H5M12 17h6",
	memories: "M5 6h14M5 12h14M5 18h9",
	map: "M6 7h.01M12 5h.01M18 9h.01M9 13h.01M15 15h.01M6 18h.01M18 19h.01",
	knowledge: "M5 5h6a2 2 0 0 1 1 1 2 2 0 0 1 1-1h6v13h-6l-1 1-1-1H5zM12 6v12",
	sources: "M4 7h6l2 2h8v10H4z",
	banks: "M5 7c0-4 14-4 14 0v10c0 4-14 4-14 0zm0 0c0 4 14 4 14 0M5 12c0 4 14 4 14 0",
	health: "M3 12h4l3-7 4 14 3-7h4",
	connect: "M9 7V3m6 4V3M7 7h10v4a5 5 0 0 1-10 0zm5 9v5",
	close: "M6 6l12 12M18 6 6 18",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

export function Button({ kind = "", busy, children, ...rest }) {
	return html`<button type="button" class="button ${kind}" aria-busy=${busy ? "true" : undefined} disabled=${busy || rest.disabled} ...${rest}>${children}</button>`;
}

// A button that runs an asynchronous action and reports its failure.
export function Act({ run, children, kind, ...rest }) {
	const [busy, setBusy] = useState(false);
	const start = async () => {
		setBusy(true);
		try {
			await run();
		} catch (error) {
			notify(error.message, { bad: true });
		}
		setBusy(false);
	};
	return html`<${Button} kind=${kind} busy=${busy} onClick=${start} ...${rest}>${children}<//>`;
}

export const Chip = ({ kind = "", children, ...rest }) =>
	html`<${rest.href ? "a" : rest.onClick ? "button" : "span"} class="chip ${kind}" ...${rest}>${children}<//>`;

export function Problem({ error, retry }) {
	return html`<div class="problem" role="alert"><p>${error.message}</p>
		${error.seconds > 0 && html`<p>Wait ${error.seconds} s.</p>`}${retry && html`<${Button} onClick=${retry}>Try again<//>`}</div>`;
}

export function Loaded({ from, children }) {
	const { data, error, reload } = from;
	if (!data && !error) return html`<p class="soft" role="status">Loading …</p>`;
	return html`${error && html`<${Problem} error=${error} retry=${reload} />`}${data && children(data)}`;
}

export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

export function Head({ title, about, children }) {
	useEffect(() => void (document.title = `${title} · recalld`), [title]);
	return html`<div class="head"><div><h1>${title}</h1>${about && html`<p class="soft">${about}</p>`}</div>
		<div class="row">${children}</div></div>`;
}

export function Field({ label, hint, children }) {
	return html`<label class="field"><span>${label}</span>${children}${hint && html`<small class="soft">${hint}</small>`}</label>`;
}

export const Text = ({ label, hint, set, ...rest }) =>
	html`<${Field} label=${label} hint=${hint}><input ...${rest} onInput=${(e) => set(e.target.value)} /><//>`;

export const Choice = ({ label, value, set, options }) => html`<${Field} label=${label}><select value=${value} onChange=${(e) => set(e.target.value)}>
	${options.map(([name, text = name]) => html`<option value=${name} selected=${name === value}>${text}</option>`)}</select><//>`;

export function Pick({ label, value, options, onPick }) {
	return html`<fieldset class="pick"><legend class="hidden">${label}</legend>${options.map(
		([name, text]) => html`<label class=${value === name ? "on" : ""}>
			<input type="radio" name=${label} checked=${value === name} onChange=${() => onPick(name)} />${text}</label>`,
	)}</fieldset>`;
}

// A modal dialog. The browser keeps the focus inside and closes it on Escape.
export function Dialog({ title, onClose, children, wide }) {
	const box = useRef(null);
	useLayoutEffect(() => {
		const before = document.activeElement;
		box.current.showModal();
		return () => before?.focus?.();
	}, []);
	return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-label=${title} onClose=${onClose}
		onClick=${(e) => e.target === box.current && onClose()}>
		<div class="inside"><header><h2>${title}</h2>
			<button type="button" class="plain" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></header>
			${children}</div></dialog>`;
}

let show = () => {};
export const notify = (text, more = {}) => show({ text, ...more, id: Math.random() });

// Says that memories were changed, with a button that undoes it.
export function notifyUndo(bank, done, what) {
	const entry = keepUndo(bank, done, what);
	notify(what, { entry });
}

export async function undoLast() {
	const entry = undoList()[0];
	if (!entry) return notify("There is nothing to undo.");
	await undoNow(entry);
}

export async function undoNow(entry) {
	try {
		const done = await undo(entry);
		notify(`Undone: ${plural(done.restored, "memory", "memories")} restored.`);
	} catch (error) {
		notify(error.message, { bad: true });
	}
}

export function Messages() {
	const [shown, setShown] = useState([]);
	const drop = (id) => setShown((old) => old.filter((it) => it.id !== id));
	show = (message) => {
		setShown((old) => [...old.slice(-2), message]);
		setTimeout(() => drop(message.id), message.bad || message.entry ? 12_000 : 5_000);
	};
	return html`<div class="messages" role="status" aria-live="polite">${shown.map(
		(it) => html`<div key=${it.id} class="message ${it.bad ? "bad" : ""}">
			<span>${it.text}</span>
			${it.entry && html`<button type="button" class="plain strong" onClick=${() => (drop(it.id), undoNow(it.entry))}>Undo</button>`}
			<button type="button" class="plain" aria-label="Dismiss" onClick=${() => drop(it.id)}><${Icon} name="close" /></button>
		</div>`,
	)}</div>`;
}

// A text with marked ranges, as text nodes.
export function Marked({ text, ranges }) {
	const pieces = [];
	let at = 0;
	for (const [start, end] of ranges || []) {
		if (start < at || end > text.length) continue;
		pieces.push(text.slice(at, start), html`<mark>${text.slice(start, end)}</mark>`);
		at = end;
	}
	pieces.push(text.slice(at));
	return html`${pieces}`;
}

export const Kind = ({ of }) => html`<span class="kind k-${of.kind}">${of.kind}</span>`;
export const Tags = ({ of, onTag }) => of.tags.map((tag) => html`<${Chip} kind="tag" onClick=${onTag && (() => onTag(tag))}>${tag}<//>`);

export const Meta = ({ of, onTag, children }) => html`<div class="meta"><${Kind} of=${of} /><time datetime=${of.occurred_at} title=${timeOf(of.occurred_at)}>${ago(of.occurred_at)}</time>${of.source && html`<span>${of.source}</span>`}${of.superseded_by && html`<span class="warn">superseded</span>`}<${Tags} of=${of} onTag=${onTag} />${children}</div>`;

export function Line({ memory, bank, note, children }) {
	return html`<li class="line" data-row>
		<a href=${memoryLink(memory, bank)} data-id=${memory.id}>${headline(memory)}</a>
		<${Meta} of=${memory}>${note && html`<span>${note}</span>`}<//>${children}</li>`;
}

export async function forget(bank, memory) {
	const done = await del(memoryPath(bank, memory.id));
	notifyUndo(bank, done, `Forgot “${headline(memory).slice(0, 60)}”.`);
	changed(bank);
}

// Keys in lists: arrows, j and k move, e edits, x forgets.
export function onListKey(e, bank) {
	if (e.ctrlKey || e.metaKey || e.altKey) return;
	const isTyping = e.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
	const step = { ArrowDown: 1, ArrowUp: -1, ...(isTyping ? {} : { j: 1, k: -1 }) }[e.key];
	const rows = [...document.querySelectorAll("main [data-row]")];
	const links = rows.map((row) => row.querySelector("a[data-id]")).filter(Boolean);
	if (step && (!isTyping || e.target.type === "search")) {
		const at = links.findIndex((it) => it.closest("[data-row]").contains(document.activeElement));
		const next = links[at + step];
		if (next) next.focus();
		else if (at === 0 && step < 0) document.querySelector("input[type=search]")?.focus();
		if (next || at >= 0) e.preventDefault();
		return;
	}
	if (isTyping) return;
	const id = document.activeElement?.closest("[data-row]")?.querySelector("a[data-id]")?.dataset.id;
	if (!id) return;
	if (e.key === "e") go("memory", id, { bank, edit: "1" });
	else if (e.key === "x") {
		get(memoryPath(bank, id)).then((memory) => forget(bank, memory)).catch((error) => notify(error.message, { bad: true }));
	} else return;
	e.preventDefault();
}

const PAGE = 100;
const PAGES = 40;

// A list of any length with rows of one height. It loads the pages in view and drops distant ones.
export function LongList({ total, height, fetchPage, version, row, label }) {
	const box = useRef(null);
	const pages = useRef(new Map());
	const [view, setView] = useState({ top: 0, size: 800 });
	const [, redraw] = useState(0);
	useLayoutEffect(() => {
		pages.current = new Map();
		box.current.scrollTop = 0;
		setView((old) => ({ ...old, top: 0 }));
	}, [version]);
	useLayoutEffect(() => {
		const measure = () => setView({ top: box.current.scrollTop, size: box.current.clientHeight });
		const watch = new ResizeObserver(measure);
		watch.observe(box.current);
		return () => watch.disconnect();
	}, []);
	const first = Math.max(0, Math.floor(view.top / height) - 8);
	const last = Math.min(total, Math.ceil((view.top + view.size) / height) + 8);
	useEffect(() => {
		const known = pages.current;
		for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) {
			if (known.has(page)) continue;
			known.set(page, []);
			fetchPage(page * PAGE, PAGE).then(
				(items) => {
					if (pages.current !== known) return;
					known.set(page, items);
					for (const old of known.keys()) if (known.size > PAGES && Math.abs(old - page) > PAGES / 2) known.delete(old);
					redraw((n) => n + 1);
				},
				() => known.delete(page),
			);
		}
	}, [first, last, version]);
	const rows = [];
	for (let index = first; index < last; index++) {
		const item = pages.current.get(Math.floor(index / PAGE))?.[index % PAGE];
		rows.push(html`<li key=${index} class="long-row" aria-posinset=${index + 1} aria-setsize=${total} style=${{ top: `${index * height}px`, height: `${height}px` }}
			data-row=${item && ""}>${item ? row(item, index) : html`<span class="ghost" />`}</li>`);
	}
	return html`<div class="long" ref=${box} tabindex="0" role="group" aria-label=${label} onScroll=${() => setView({ top: box.current.scrollTop, size: box.current.clientHeight })}>
		<ul style=${{ height: `${total * height}px` }}>${rows}</ul></div>`;
}

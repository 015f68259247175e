// Facets: the conditions that the search and the list of memories share.
import { html, inBank, keepQuery, number, useChanges, useGet, Button, Field } from "./ui.js";

const LISTS = ["kinds", "sources", "categories", "tags"];
const SINGLE = ["session", "document", "contains", "since", "until"];

// The conditions as the API takes them; undefined without any.
export function whereOf(filters) {
	const found = {};
	for (const name of LISTS) if (filters[name]?.length) found[name] = filters[name];
	for (const name of SINGLE) if (filters[name]) found[name] = filters[name];
	if (found.until) found.until = dayAfter(found.until);
	return Object.keys(found).length ? found : undefined;
}

function dayAfter(date) {
	const next = new Date(`${date}T00:00:00Z`);
	next.setUTCDate(next.getUTCDate() + 1);
	return next.toISOString().slice(0, 10);
}

export function filtersFrom(query) {
	const found = {};
	for (const name of LISTS) if (query.get(name)) found[name] = query.get(name).split("\n");
	for (const name of SINGLE) if (query.get(name)) found[name] = query.get(name);
	return found;
}

export function keepFilters(filters) {
	const kept = {};
	for (const name of LISTS) kept[name] = (filters[name] || []).join("\n");
	for (const name of SINGLE) kept[name] = filters[name] || "";
	keepQuery(kept);
}

export const toggled = (filters, name, value) => {
	const now = filters[name] || [];
	return { ...filters, [name]: now.includes(value) ? now.filter((it) => it !== value) : [...now, value] };
};

const TITLES = { kinds: "Kind", sources: "Source", categories: "Category", tags: "Tag" };

export function Facets({ bank, filters, onChange, withText }) {
	const found = useGet(inBank(bank, "/facets"));
	useChanges(bank, found.reload);
	const data = found.data || {};
	const set = (name) => (e) => onChange({ ...filters, [name]: e.target.value });
	const isSet = whereOf(filters) !== undefined;
	return html`<details class="facets" open=${matchMedia("(min-width: 900px)").matches}><summary>Filters${isSet ? " (on)" : ""}</summary><div class="facet-list">
		${isSet && html`<${Button} kind="small" onClick=${() => onChange({})}>Clear all<//>`}
		${withText && html`<${Field} label="Contains the words"><input type="search" value=${filters.contains || ""} onInput=${set("contains")} /><//>`}
		${LISTS.map((name) => {
			const chosen = filters[name] || [];
			const known = (data[name] || []).filter((it) => it.value);
			const values = [...chosen.filter((value) => !known.some((it) => it.value === value)).map((value) => ({ value })), ...known];
			if (!values.length) return null;
			return html`<fieldset><legend>${TITLES[name]}</legend><div class="chips">${values.slice(0, 12).map(
				({ value, count }) => html`<button type="button" class="chip ${chosen.includes(value) ? "on" : ""}" aria-pressed=${chosen.includes(value)}
					onClick=${() => onChange(toggled(filters, name, value))}>${value}${count !== undefined && html` <small>${number(count)}</small>`}</button>`,
			)}</div></fieldset>`;
		})}
		${(data.sessions?.length > 0 || filters.session) && html`<${Field} label="Session"><select value=${filters.session || ""} onChange=${set("session")}>
			<option value="">any</option>${[...new Set([filters.session, ...(data.sessions || []).map((it) => it.value)])].filter(Boolean).map((value) => html`<option value=${value} selected=${filters.session === value}>${value.slice(0, 60)}</option>`)}</select><//>`}
		<div class="two"><${Field} label="From"><input type="date" value=${filters.since || ""} onInput=${set("since")} /><//>
		<${Field} label="To"><input type="date" value=${filters.until || ""} onInput=${set("until")} /><//></div>
		</div></details>`;
}

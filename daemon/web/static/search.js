// Search: results while typing, facets, the reason of each hit, near misses, and the view of an agent.
import { html, useEffect, useLayoutEffect, useRef, useState, headline, inBank, keepQuery, link, memoryLink, number, plural, post, useChanges, useGet, useLoad, Act, Button, Chip, Empty, Head, Line, Loaded, Marked, Meta, Pick, Problem, forget } from "./ui.js";
import { Facets, filtersFrom, keepFilters, toggled, whereOf } from "./filters.js";

const MODES = [["hybrid", "Both"], ["keyword", "Words"], ["semantic", "Meaning"]];
const THRESHOLDS = [["0", "All"], ["0.3", "Likely"], ["0.6", "Relevant"]];
const LIMIT = 25;

// Searches for the latest question. One request runs at a time; while it runs, only the newest question
// waits. So results appear for each pause in typing, and a slow daemon is not flooded.
function useSearch(bank, question) {
	const [state, setState] = useState({});
	const running = useRef(null);
	const waiting = useRef(null);
	const start = (asked) => {
		if (!asked.query.trim()) {
			running.current?.abort();
			running.current = waiting.current = null;
			return setState({});
		}
		if (running.current) return void (waiting.current = asked);
		setState((old) => ({ ...old, busy: true }));
		const mine = (running.current = new AbortController());
		const began = performance.now();
		const finish = (next) => {
			if (mine.signal.aborted) return;
			running.current = null;
			const left = waiting.current;
			waiting.current = null;
			setState((old) => ({ ...old, ...next, busy: !!left }));
			if (left) start(left);
		};
		post(inBank(bank, "/search"), asked, { signal: mine.signal }).then(
			(answer) => finish({ answer, asked, error: null, milliseconds: performance.now() - began }),
			(error) => error.name !== "AbortError" && finish({ error }),
		);
	};
	const text = JSON.stringify(question);
	useLayoutEffect(() => start(question), [bank, text]);
	useEffect(() => () => running.current?.abort(), []);
	return { ...state, again: () => start(question) };
}

const PARTS = [["keyword", "Words"], ["vector", "Meaning"], ["context", "Context"], ["boosts", "Boosts"]];

const wordsOf = (text) => [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [])];

// The words of the question that match, and those that do not occur.
function wordsIn(hit, query) {
	if (hit.words) return { found: hit.words, missing: hit.missing || [] };
	const marked = wordsOf((hit.matches || []).map(([start, end]) => hit.snippet.slice(start, end)).join(" "));
	const all = wordsOf(`${hit.memory.title} ${hit.memory.text} ${hit.memory.tags.join(" ")}`);
	const stem = (word) => word.slice(0, Math.max(4, word.length - 3));
	const missing = wordsOf(query).filter((word) => !all.some((it) => it.startsWith(stem(word))));
	return { found: marked.map((word) => ({ word })), missing };
}

function Why({ hit, query }) {
	const parts = hit.parts || {};
	const most = Math.max(0.2, ...PARTS.map(([name]) => Math.abs(parts[name] || 0)));
	const { found, missing } = wordsIn(hit, query);
	const known = new Set([...PARTS.map(([name]) => name), "bm25", "cover", "cosine", "value"]);
	const further = Object.entries(parts).filter(([name]) => !known.has(name));
	return html`<div class="why">
		${Object.keys(parts).length === 0 && html`<p>The question names this memory by its id.</p>`}
		${parts.value !== undefined && html`<table class="parts"><caption class="hidden">The parts of the score</caption><tbody>${PARTS.filter(([name]) => name in parts).map(
			([name, title]) => html`<tr><th scope="row">${title}</th><td><span class="barbox"><span class="fill ${parts[name] < 0 ? "bad" : ""}" style=${{ width: `${(Math.abs(parts[name]) / most) * 100}%` }} /></span></td>
				<td class="num">${parts[name].toFixed(3)}</td></tr>`,
		)}<tr><th scope="row">Sum</th><td class="soft">gives the score ${hit.score.toFixed(2)}</td><td class="num">${parts.value.toFixed(3)}</td></tr></tbody></table>`}
		<dl class="facts">
			${found.length > 0 && html`<div><dt>Words</dt><dd class="chips">${found.map((it) => html`<${Chip}>${it.word}${it.weight !== undefined && html` <small>${it.weight.toFixed(2)}</small>`}<//>`)}</dd></div>`}
			${missing.length > 0 && html`<div><dt>Missing</dt><dd class="chips">${missing.map((word) => html`<${Chip} kind="miss">${word}<//>`)}</dd></div>`}
			${parts.bm25 !== undefined && html`<div><dt>BM25</dt><dd>${parts.bm25.toFixed(2)}${parts.cover !== undefined && html` <span class="soft">covers ${Math.round(parts.cover * 100)} % of the weight of the question</span>`}</dd></div>`}
			${parts.cosine !== undefined && html`<div><dt>Cosine</dt><dd>${parts.cosine.toFixed(3)}</dd></div>`}
			${further.map(([name, value]) => html`<div><dt>${name.replaceAll("_", " ")}</dt><dd>${Number(value).toFixed(3)}</dd></div>`)}
		</dl></div>`;
}

// Why a near miss stayed below the threshold, in one sentence.
function reasonOf(hit, query, threshold) {
	const parts = hit.parts || {};
	const { missing } = wordsIn(hit, query);
	const total = wordsOf(query).length;
	const said = [];
	if (missing.length && missing.length < total) said.push(`${missing.length} of ${total} words are missing`);
	else if (missing.length) said.push("no word of the question occurs");
	if (parts.cosine !== undefined) said.push(parts.cosine < 0.25 ? `the meaning is distant (cosine ${parts.cosine.toFixed(2)})` : `the meaning is related (cosine ${parts.cosine.toFixed(2)})`);
	if (parts.boosts < 0) said.push("it is a question itself, or old");
	return `Score ${hit.score.toFixed(2)} is below ${threshold}${said.length ? `: ${said.join("; ")}` : ""}.`;
}

function Hit({ hit, bank, query, note, onTag }) {
	const [isOpen, setOpen] = useState(false);
	const { memory } = hit;
	return html`<li class="hit" data-row>
		<div class="score" title=${`Score ${hit.score.toFixed(3)} of 1`}><span style=${{ height: `${Math.round(hit.score * 100)}%` }} /></div>
		<div class="grow">
			${memory.title && html`<div class="title">${memory.title}</div>`}
			<a class="snippet" href=${memoryLink(memory, bank)} data-id=${memory.id}><${Marked} text=${hit.snippet || memory.text.slice(0, 300)} ranges=${hit.snippet ? hit.matches : []} /></a>
			<${Meta} of=${memory} onTag=${onTag}><span class="num" aria-label=${`Score ${hit.score.toFixed(2)}`}>${hit.score.toFixed(2)}</span>
				<button type="button" class="plain strong" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "Hide" : "Why?"}</button>
				<${Act} kind="plain" run=${() => forget(bank, memory)} aria-label=${`Forget: ${headline(memory).slice(0, 60)}`}>Forget<//><//>
			${note && html`<p class="soft note">${note}</p>`}
			${isOpen && html`<${Why} hit=${hit} query=${query} />`}
		</div></li>`;
}

function AgentView({ bank, query }) {
	const seen = useLoad((signal) => post(inBank(bank, "/preview"), { query }, { signal }), [bank, query]);
	return html`<section class="card agent"><h2>As an agent sees it</h2><${Loaded} from=${seen}>${(data) => html`
		<p class="soft">The exact answer of the tool <code>${data.tool}</code>: about <b>${number(data.tokens)}</b> tokens, ${number(data.text.length)} characters.</p>
		<pre tabindex="0" aria-label="Answer of the tool">${data.text}</pre>`}<//></section>`;
}

function Recent({ bank }) {
	const found = useGet(inBank(bank, "/memories"), { limit: 20 });
	useChanges(bank, found.reload);
	if (found.error?.status === 404) return html`<${FirstRun} />`;
	return html`<${Loaded} from=${found}>${(data) =>
		data.total === 0
			? html`<${FirstRun} />`
			: html`<h2>Latest of ${plural(data.total, "memory", "memories")}</h2><ul class="list">${data.memories.map((memory) => html`<${Line} key=${memory.id} memory=${memory} bank=${bank} />`)}</ul>`}<//>`;
}

const FirstRun = () => html`<${Empty} title="This bank is empty">
	<p>Store a memory and find it again, or connect a client so that its agent remembers.</p>
	<p class="row"><a class="button main" href=${link("connect")}>Start here</a> <a class="button" href=${link("banks")}>Import memories</a></p><//>`;

export default function Search({ bank, query }) {
	const [text, setText] = useState(query.get("q") || "");
	const [mode, setMode] = useState(query.get("mode") || "hybrid");
	const [least, setLeast] = useState(query.get("min") || "0.3");
	const [filters, setFilters] = useState(filtersFrom(query));
	const [showsAgent, setShowsAgent] = useState(false);
	const box = useRef(null);
	const question = { query: text, mode, limit: LIMIT, min_score: Number(least), near_misses: least === "0" ? 0 : 5, explain: true, where: whereOf(filters) };
	const found = useSearch(bank, question);
	useChanges(bank, found.again);
	useEffect(() => box.current.focus({ preventScroll: true }), []);
	useEffect(() => {
		const timer = setTimeout(() => {
			keepQuery({ q: text, mode, min: least });
			keepFilters(filters);
		}, 200);
		return () => clearTimeout(timer);
	}, [text, mode, least, filters]);
	const onTag = (tag) => setFilters(toggled(filters, "tags", tag));
	const answer = text.trim() ? found.answer : null;
	const asked = found.asked?.query || text;
	return html`<${Head} title="Search"><//>
		<div class="searchbox"><label class="hidden" for="q">Search in ${bank}</label>
			<input id="q" type="search" ref=${box} autocomplete="off" spellcheck="false" placeholder=${`Search in ${bank}`} value=${text} onInput=${(e) => setText(e.target.value)} /></div>
		<div class="row tools"><${Pick} label="Mode" value=${mode} options=${MODES} onPick=${setMode} /><${Pick} label="Threshold" value=${least} options=${THRESHOLDS} onPick=${setLeast} />
			${text.trim() && html`<${Button} kind="small" aria-pressed=${showsAgent} onClick=${() => setShowsAgent(!showsAgent)}>As an agent sees it<//>`}
			<span class="soft grow right" role="status">${answer ? `${plural(answer.hits.length, "hit")}${found.milliseconds ? ` · ${Math.round(found.milliseconds)} ms` : ""}` : ""}</span></div>
		<div class="split"><${Facets} bank=${bank} filters=${filters} onChange=${setFilters} />
		<section class="grow" aria-label="Results">
			${found.error && html`<${Problem} error=${found.error} retry=${found.again} />`}
			${showsAgent && text.trim() && html`<${AgentView} bank=${bank} query=${text} />`}
			${found.busy && !answer && text.trim() && html`<p class="soft" role="status">Searching …</p>`}
			${!text.trim() && html`<${Recent} bank=${bank} />`}
			${answer && html`
				${answer.degraded.length > 0 && html`<p class="notice">Searched by ${answer.mode} only: ${answer.degraded.join("; ")}.</p>`}
				${answer.hits.length === 0 && html`<${Empty} title="Nothing matches well enough"><p>${answer.near_misses.length ? "The nearest memories are below." : "Try other words, another mode, or fewer filters."}</p><//>`}
				<ol class="list hits">${answer.hits.map((hit) => html`<${Hit} key=${hit.memory.id} hit=${hit} bank=${bank} query=${asked} onTag=${onTag} />`)}</ol>
				${answer.omitted > 0 && html`<p class="soft">${plural(answer.omitted, "further hit")} did not fit into the answer.</p>`}
				${answer.near_misses.length > 0 && html`<section class="near"><h2>Near misses</h2><p class="soft">An agent with this threshold does not get these.</p>
					<ol class="list hits">${answer.near_misses.map((hit) => html`<${Hit} key=${hit.memory.id} hit=${hit} bank=${bank} query=${asked} onTag=${onTag} note=${reasonOf(hit, asked, least)} />`)}</ol></section>`}`}
		</section></div>`;
}

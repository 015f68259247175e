// Timeline: days, then sessions, then events, with live updates.
import { html, useState, clockOf, dayOf, get, inBank, keepQuery, link, number, plural, useChanges, useLoad, Button, Choice, Empty, Field, Head, Line, Loaded } from "./ui.js";

const DAYS = 14;
const anyOf = (values) => [["", "any"], ...values.map((it) => [it])];

function bySession(memories) {
	const groups = new Map();
	for (const memory of memories) {
		const name = memory.session || "";
		if (!groups.has(name)) groups.set(name, []);
		groups.get(name).push(memory);
	}
	return [...groups];
}

function Session({ id, memories, session, bank }) {
	const client = session?.client || memories[0].provenance.client;
	return html`<details class="session" open><summary><span>${id ? client || "Session" : "Without a session"}</span>
		<span class="soft">${id && id.slice(0, 24)} ${plural(memories.length, "entry", "entries")}${session?.transport ? ` · ${session.transport}` : ""}</span></summary>
		${id && html`<p class="row"><a href=${link("memories", "", { bank, session: id })}>All memories of this session</a></p>`}
		<ul class="list">${memories.map((memory) => html`<${Line} key=${memory.id} memory=${memory} bank=${bank} note=${clockOf(memory.occurred_at)} />`)}</ul></details>`;
}

export default function Timeline({ bank, query }) {
	const [days, setDays] = useState(DAYS);
	const [until, setUntil] = useState(query.get("until") || "");
	const [client, setClient] = useState("");
	const [source, setSource] = useState("");
	const found = useLoad(
		async (signal) => {
			const past = until && new Date(Date.parse(`${until}T00:00:00Z`) + 86_400_000).toISOString();
			const [timeline, sessions] = await Promise.all([
				get(inBank(bank, "/timeline"), { days, each: 50, until: past, sources: source ? [source] : [] }, signal),
				get(inBank(bank, "/sessions"), { limit: 200 }, signal),
			]);
			return { ...timeline, sessions: sessions.sessions };
		},
		[bank, days, until, source],
	);
	useChanges(bank, found.reload);
	const jump = (e) => {
		setUntil(e.target.value);
		keepQuery({ until: e.target.value });
	};
	return html`<${Head} title="Timeline" about="Everything that reached this bank, by day and session."><//>
		<${Loaded} from=${found}>${(data) => {
			const sessions = new Map(data.sessions.map((it) => [it.id, it]));
			const clientOf = (memory) => sessions.get(memory.session)?.client || memory.provenance.client || "";
			const all = data.days.flatMap((day) => day.memories);
			const clients = [...new Set(all.map(clientOf))].filter(Boolean).sort();
			const sources = [...new Set([source, ...all.map((it) => it.source || "")])].filter(Boolean).sort();
			const fits = (memory) => !client || clientOf(memory) === client;
			return html`<div class="row tools">
				<${Field} label="Up to the day"><input type="date" value=${until} onInput=${jump} /><//>
				<${Choice} label="Client" value=${client} set=${setClient} options=${anyOf(clients)} />
				<${Choice} label="Source" value=${source} set=${setSource} options=${anyOf(sources)} /></div>
				${data.days.length === 0 && html`<${Empty} title="Nothing happened yet"><p>Memories and events appear here as soon as they are stored.</p><//>`}
				<ol class="days">${data.days.map((day) => {
					const shown = day.memories.filter(fits);
					return shown.length > 0 && html`<li key=${day.date}><h2><time datetime=${day.date}>${dayOf(`${day.date}T12:00:00`)}</time> <small class="soft">${plural(day.count, "entry", "entries")}</small></h2>
						${bySession(shown).map(([id, memories]) => html`<${Session} key=${id} id=${id} memories=${memories} session=${sessions.get(id)} bank=${bank} />`)}
						${day.count > day.memories.length && html`<a href=${link("memories", "", { bank, since: day.date, until: day.date })}>All ${number(day.count)} of this day</a>`}</li>`;
				})}</ol>
				${data.days.length >= days && html`<${Button} onClick=${() => setDays(days + DAYS)}>Earlier days<//>`}`;
		}}<//>`;
}

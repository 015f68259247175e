// Data of @awareness.market/local, written by its own store: node awareness.mjs PACKAGE_DIRECTORY TARGET
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [home, target] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(home, 'src', 'core', name)));
const { MemoryStore } = await load('memory-store.mjs');
const { ensureLocalDirs } = await load('config.mjs');
ensureLocalDirs(target);
const store = new MemoryStore(target);
await store.write({
  type: 'turn_summary',
  title: 'Chose PostgreSQL for the ledger',
  content: 'We chose PostgreSQL because the ledger needs transactions.\n\nSQLite stays for tests.',
  tags: ['database', 'decision'],
  agent_role: 'builder_agent',
  session_id: 'ses_20260503_a1',
  source: 'claude-code',
});
await store.write({
  type: 'message',
  title: 'Editor settings',
  content: 'Ana prefers tabs: "never" spaces; ünïcode — kept.',
  tags: [],
  session_id: 'ses_20260503_a1',
});
const { id } = await store.write({ type: 'message', title: 'Old plan', content: 'Release on Mondays.' });
await store.updateStatus(id, 'superseded');

// Cards, tasks and skills go through the extractor and the index, which needs better-sqlite3.
try {
  const { Indexer } = await load('indexer.mjs');
  const { KnowledgeExtractor } = await load('knowledge-extractor.mjs');
  const indexer = new Indexer(path.join(target, '.awareness', 'index.db'));
  const extractor = new KnowledgeExtractor(store, indexer);
  const insights = {
    knowledge_cards: [
      {
        category: 'decision',
        title: 'PostgreSQL for the ledger',
        summary: 'The ledger needs transactions, so it uses PostgreSQL.',
        tags: ['database'],
        confidence: 0.9,
      },
    ],
    action_items: [{ title: 'Write the migration', detail: 'For the ledger tables', priority: 'high' }],
  };
  const result = await extractor.extract('We chose PostgreSQL.', { session_id: 'ses_20260503_a1' }, insights);
  console.error(JSON.stringify(result).slice(0, 300));
  indexer.close?.();
} catch (error) {
  console.error(`without index: ${error.message}`);
}

"""Hand-judged pairs of cards: a repetition, an update, or two statements that are both kept.

The first twelve are the kinds of pairs that the search-quality issue names: a changed number,
vendor, rule and duration, an untitled update, paraphrases, equal titles, and two subjects.
"""

from typing import Final, NamedTuple


class Pair(NamedTuple):
    """Two cards of one category, and the outcome of putting the second one."""

    outcome: str
    old_title: str
    old_summary: str
    title: str
    summary: str


PAIRS: Final = (
    Pair(
        "superseded",
        "API rate limit",
        "The API allows 100 requests per minute.",
        "Rate limit of the API",
        "The API allows 250 requests per minute.",
    ),
    Pair(
        "superseded",
        "Email provider",
        "Transactional mail goes through SendGrid.",
        "Mail vendor",
        "Transactional mail now goes through Postmark.",
    ),
    Pair(
        "superseded",
        "Review rule",
        "Every pull request needs one approval before it is merged.",
        "Approvals",
        "Every pull request needs two approvals before it is merged.",
    ),
    Pair(
        "superseded",
        "Session lifetime",
        "Sessions expire after 30 minutes without activity.",
        "Session timeout",
        "Sessions expire after 8 hours without activity.",
    ),
    Pair(
        "superseded",
        "Deploy day",
        "We deploy on Tuesdays.",
        "",
        "We deploy on Wednesdays now.",
    ),
    Pair(
        "duplicate",
        "Indentation",
        "Ana prefers tabs to spaces for indentation.",
        "Tabs",
        "For indentation, Ana likes tabs better than spaces.",
    ),
    Pair(
        "duplicate",
        "Database choice",
        "We use PostgreSQL as the main database.",
        "Database choice",
        "We use PostgreSQL as our main database.",
    ),
    Pair(
        "superseded",
        "Python version",
        "The service runs on Python 3.11.",
        "Python version",
        "The service runs on Python 3.12.",
    ),
    Pair(
        "superseded",
        "Logging",
        "Logs are written as plain text.",
        "Logging",
        "Logs are written as JSON lines.",
    ),
    Pair(
        "duplicate",
        "CI provider",
        "Continuous integration runs on GitHub Actions.",
        "CI",
        "CI runs on GitHub Actions.",
    ),
    Pair(
        "created",
        "Port of billing",
        "The billing service listens on port 8080.",
        "Port of search",
        "The search service listens on port 8081.",
    ),
    Pair(
        "created",
        "Frontend cache",
        "The frontend caches assets for 60 seconds.",
        "Backend cache",
        "The backend caches queries for 30 seconds.",
    ),
    Pair(
        "created",
        "Ana's editor",
        "Ana prefers Vim.",
        "Ben's editor",
        "Ben prefers Emacs.",
    ),
    Pair(
        "created",
        "Staging database",
        "The staging database is Postgres 14.",
        "Production database",
        "The production database is Postgres 15.",
    ),
    Pair(
        "created",
        "Unit tests",
        "Unit tests run on every push.",
        "Integration tests",
        "Integration tests run every night.",
    ),
    Pair(
        "created",
        "Redis for sessions",
        "Sessions are stored in Redis.",
        "Redis for queues",
        "Job queues are stored in Redis.",
    ),
    Pair(
        "created",
        "Importer retries",
        "The importer retries three times.",
        "Exporter retries",
        "The exporter retries three times.",
    ),
    Pair(
        "created",
        "Upload limit",
        "Uploads are limited to 10 MB.",
        "Download limit",
        "Downloads are limited to 10 MB.",
    ),
    Pair(
        "created",
        "Timeout of reads",
        "Reads time out after 5 seconds.",
        "Timeout of writes",
        "Writes time out after 30 seconds.",
    ),
    Pair(
        "created",
        "Auth tokens",
        "Access tokens are signed with RS256.",
        "Password hashing",
        "Passwords are hashed with bcrypt.",
    ),
    Pair(
        "created",
        "EU region",
        "Data of European customers stays in Frankfurt.",
        "US region",
        "Data of American customers stays in Virginia.",
    ),
    Pair(
        "created",
        "Ana's role",
        "Ana maintains the parser.",
        "Ana's holiday",
        "Ana is on holiday in August.",
    ),
    Pair(
        "created",
        "Cache eviction",
        "The cache evicts the least recently used entry.",
        "Cache size",
        "The cache holds at most 1 GB.",
    ),
    Pair(
        "created",
        "Error pages",
        "Error pages are static HTML.",
        "Landing pages",
        "Landing pages are static HTML.",
    ),
    Pair(
        "created",
        "Mobile app",
        "The mobile app is written in Kotlin.",
        "Desktop app",
        "The desktop app is written in Rust.",
    ),
    Pair(
        "created",
        "Redis holds sessions",
        "Redis holds the sessions.",
        "Redis holds the queue",
        "Redis holds the queue.",
    ),
    Pair(
        "superseded",
        "Backup schedule",
        "Backups run every night at 2 am.",
        "Nightly backup",
        "Backups run every night at 4 am.",
    ),
    Pair(
        "superseded",
        "Bundler",
        "The web client is built with Webpack.",
        "Build tool",
        "The web client is built with Vite instead of Webpack.",
    ),
    Pair(
        "superseded",
        "Licence policy",
        "New dependencies may use any licence.",
        "Dependency licences",
        "New dependencies may only use MIT or Apache licences.",
    ),
    Pair(
        "superseded",
        "On-call rotation",
        "The on-call rotation changes every week.",
        "Rotation",
        "The on-call rotation changes every two weeks.",
    ),
    Pair(
        "duplicate",
        "Leak in the worker",
        "The background worker leaked memory because database connections were not closed.",
        "Worker memory leak",
        "Unclosed database connections made the background worker leak memory.",
    ),
    Pair(
        "duplicate",
        "Commit style",
        "Commit subjects are written in the imperative mood.",
        "Commit messages",
        "Write the subject of a commit in the imperative.",
    ),
    Pair(
        "superseded",
        "Commit style",
        "Commit subjects are written in the imperative mood.",
        "Commit messages",
        "Commit subjects are written in the past tense.",
    ),
    Pair(
        "superseded",
        "Retries",
        "Failed webhooks are retried three times.",
        "Webhook retries",
        "Failed webhooks are not retried.",
    ),
    Pair(
        "created",
        "Retries of webhooks",
        "Failed webhooks are retried three times.",
        "Retries of mails",
        "Failed mails are retried three times.",
    ),
    Pair(
        "created",
        "Ana prefers tabs",
        "Ana prefers tabs to spaces.",
        "Ben prefers tabs",
        "Ben prefers tabs to spaces.",
    ),
)

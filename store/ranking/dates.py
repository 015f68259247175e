"""Time expressions in questions: "last week", "yesterday", "in May", "since the release".

An expression becomes a span of unix milliseconds, computed from the time that the caller passes in.
Days, weeks (from Monday), months and years are those of UTC, as everywhere in the store. A date
without a year is the latest one that is not in the future. An expression that is not understood
gives no span, and the question stays ordinary text.

Only English is understood. Every repetition in the patterns is bounded, so the time is linear.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from store.ranking.tokenizer import is_stop_word

_DAY: Final = timedelta(days=1)
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "twelve": 12, "couple of": 2, "a couple of": 2,
    "few": 3, "a few": 3,
}  # fmt: skip
_UNIT_DAYS: Final = {"hour": 1 / 24, "day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
_RECENT_DAYS: Final = 14

_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)\b"
_AMOUNT: Final = (
    r"(?P<amount>\d{1,4}|a couple of|couple of|a few|few|an?|one|two|three|four|five|six|seven"
    r"|eight|nine|ten|twelve)"
)
_UNIT: Final = r"(?P<unit>hour|day|week|fortnight|month|year)s?\b"

#: Words of a question that ask for everything in the span, not for a subject.
_ASKING: Final = frozenset(
    (
        *("happen", "happened", "happening", "happens", "do", "did", "does", "doing", "done"),
        *("work", "worked", "working", "go", "going", "gone", "went", "event", "events"),
        *("activity", "activities", "news", "new", "recap", "summary", "summarise", "summarize"),
        *("overview", "progress", "everything", "anything", "something", "thing", "things"),
        *("list", "show", "tell", "give", "get", "got", "us", "me", "talk", "talked", "discuss"),
        *("discussed", "say", "said", "up", "far", "team", "change", "changed", "changes", "s"),
    )
)
_WORD: Final = re.compile(r"[^\W_]+")


class AskedTime(Struct, frozen=True, kw_only=True):
    """The time that a question asks about: a span, or a span that begins with a named event."""

    since: int | None = None  # unix milliseconds, inclusive
    until: int | None = None  # exclusive
    anchor: str = ""  # "the release": the span begins when that happened
    is_all: bool = False  # the question names no subject: everything in the span is an answer


_Span = tuple[datetime | None, datetime | None]


def asked_time(question: str, now: int) -> AskedTime | None:
    """The time that a question asks about, if it names one; `now` is unix milliseconds."""
    if len(question) > 2_000:
        return None  # a text that was pasted, not a question
    moment = datetime.fromtimestamp(now / 1000, UTC)
    for pattern, reading in _READINGS:
        found = pattern.search(question)
        if found is None:
            continue
        try:
            since, until = reading(found, moment)
        except (ValueError, OverflowError):
            continue  # "31 February" is ordinary text
        relation = (found.groupdict().get("relation") or "").lower()
        if relation in ("since", "after"):
            since, until = (until if relation == "after" else since), None
        elif relation in ("before", "until"):
            since, until = None, since
        return AskedTime(
            since=None if since is None else _milliseconds(since),
            until=None if until is None else _milliseconds(until),
            is_all=_names_no_subject(question, found),
        )
    found = _ANCHOR.search(question)
    if found is None:
        return None
    return AskedTime(anchor=found["anchor"].strip(), is_all=_names_no_subject(question, found))


def _names_no_subject(question: str, found: re.Match[str]) -> bool:
    rest = question[: found.start()] + " " + question[found.end() :]
    words = [word.casefold() for word in _WORD.findall(rest)]
    return all(word in _ASKING or is_stop_word(word) for word in words)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _start_of(unit: str, moment: datetime) -> datetime:
    day = _midnight(moment)
    match unit:
        case "week":
            return day - day.weekday() * _DAY
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case _:
            return day.replace(month=1, day=1)


def _next_month(start: datetime, months: int = 1) -> datetime:
    count = start.year * 12 + start.month - 1 + months
    return start.replace(year=count // 12, month=count % 12 + 1, day=1)


def _this_or_last(found: re.Match[str], now: datetime) -> _Span:
    """This week, last month, the past year."""
    unit, which = found["unit"].lower(), found["which"].lower()
    start = _start_of(unit, now)
    if which == "this":
        return start, now + _DAY
    if which == "past":
        return now - (92 if unit == "quarter" else _UNIT_DAYS[unit]) * _DAY, now + _DAY
    return _start_of(unit, start - _DAY), start


def _weekend(found: re.Match[str], now: datetime) -> _Span:
    monday = _start_of("week", now)
    if found["which"].lower() != "last" and now.weekday() >= 5:
        monday += 7 * _DAY
    return monday - 2 * _DAY, monday


def _day(found: re.Match[str], now: datetime) -> _Span:
    name = found["day"].lower()
    back = 2 if "before" in name else 1 if name in ("yesterday", "last night") else 0
    start = _midnight(now) - back * _DAY
    return start, start + _DAY


def _last_units(found: re.Match[str], now: datetime) -> _Span:
    return now - _days(found) * _DAY, now + _DAY


def _units_ago(found: re.Match[str], now: datetime) -> _Span:
    """Three days ago is that day; two weeks ago and two months ago are the days around it."""
    unit = found["unit"].lower()
    if unit == "hour":
        return now - (_days(found) + 1 / 24) * _DAY, now - (_days(found) - 1 / 24) * _DAY
    day = _midnight(now - _days(found) * _DAY)
    slack = {"day": 0, "week": 3, "fortnight": 3, "month": 15, "year": 183}[unit]
    return day - slack * _DAY, day + (slack + 1) * _DAY


def _days(found: re.Match[str]) -> float:
    amount = found["amount"].lower()
    count = int(amount) if amount.isdigit() else _NUMBERS[amount]
    return count * _UNIT_DAYS[found["unit"].lower()]


def _weekday(found: re.Match[str], now: datetime) -> _Span:
    """The latest such day before today; today itself is called "today"."""
    wanted = _WEEKDAYS.index(found["weekday"].lower())
    back = (now.weekday() - wanted - 1) % 7 + 1
    start = _midnight(now) - back * _DAY
    return start, start + _DAY


def _month_number(found: re.Match[str]) -> int:
    name = found["month"].lower()[:3]
    return next(at for at, month in enumerate(_MONTHS, 1) if month.startswith(name))


def _date(found: re.Match[str], now: datetime) -> _Span:
    month, day = _month_number(found), int(found["day"])
    if found["year"]:
        start = datetime(int(found["year"]), month, day, tzinfo=UTC)
    else:
        start = datetime(now.year, month, day, tzinfo=UTC)
        if start > now:
            start = datetime(now.year - 1, month, day, tzinfo=UTC)
    return start, start + _DAY


def _iso_date(found: re.Match[str], now: datetime) -> _Span:
    start = datetime(int(found["year"]), int(found["month"]), int(found["day"]), tzinfo=UTC)
    return start, start + _DAY


def _whole_month(found: re.Match[str], now: datetime) -> _Span:
    month, year = _month_number(found), found.groupdict().get("year")
    start = datetime(int(year) if year else now.year, month, 1, tzinfo=UTC)
    if not year and start > now:
        start = start.replace(year=now.year - 1)
    if (
        not year
        and (found["relation"] or "").lower() == "last"
        and start == _start_of("month", now)
    ):
        start = start.replace(year=now.year - 1)
    return start, _next_month(start)


def _whole_year(found: re.Match[str], now: datetime) -> _Span:
    start = datetime(int(found["year"]), 1, 1, tzinfo=UTC)
    return start, start.replace(year=start.year + 1)


def _recent(found: re.Match[str], now: datetime) -> _Span:
    return now - _RECENT_DAYS * _DAY, now + _DAY


def _spaced(pattern: str) -> str:
    """The pattern, with up to four white-space characters for each space."""
    return "(?i)" + pattern.replace(" ", r"\s{1,4}")


_RELATION: Final = r"(?:\b(?P<relation>since|after|before|until) (?:the )?)?"

_READINGS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], _Span]], ...]] = (
    (
        re.compile(
            _spaced(_RELATION + r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
        ),
        _iso_date,
    ),
    (
        re.compile(
            _spaced(
                _RELATION
                + r"\b(?P<day>\d{1,2})(?:st|nd|rd|th)?(?: of)? "
                + _MONTH
                + f"(?:,? {_YEAR})?"
            )
        ),
        _date,
    ),
    (
        re.compile(
            _spaced(
                _RELATION
                + r"\b"
                + _MONTH
                + r" (?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
                + f"(?:,? {_YEAR})?"
            )
        ),
        _date,
    ),
    (
        re.compile(
            _spaced(
                r"\b(?:in |within |over |during )?(?:the )?(?:last|past) " + _AMOUNT + " " + _UNIT
            )
        ),
        _last_units,
    ),
    (re.compile(_spaced(_RELATION + r"\b" + _AMOUNT + " " + _UNIT + " ago\\b")), _units_ago),
    (re.compile(_spaced(_RELATION + r"\b(?P<which>last|this|past|over the) weekend\b")), _weekend),
    (
        re.compile(
            _spaced(_RELATION + r"\b(?P<which>last|this|past) (?P<unit>week|month|quarter|year)\b")
        ),
        _this_or_last,
    ),
    (
        re.compile(
            _spaced(
                _RELATION + r"\b(?P<day>the day before yesterday|yesterday|last night|today|tonight"
                r"|this (?:morning|afternoon|evening))\b"
            )
        ),
        _day,
    ),
    (
        re.compile(
            _spaced(
                r"\b(?:(?P<relation>since|after|before|until)|on|last|this past)(?: last)? "
                rf"(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
            )
        ),
        _weekday,
    ),
    (
        re.compile(
            _spaced(
                r"\b(?:(?P<relation>since|after|before|until|last)|in|during|of|from|this)"
                r"(?: (?:early|late|mid))? " + _MONTH + f"(?:,? {_YEAR})?(?! \\d)"
            )
        ),
        _whole_month,
    ),
    (re.compile(_spaced(r"(?P<relation>\b)" + _MONTH + f",? {_YEAR}")), _whole_month),
    (
        re.compile(_spaced(r"\b(?:(?P<relation>since|after|before|until)|in|during) " + _YEAR)),
        _whole_year,
    ),
    (re.compile(_spaced(r"(?P<relation>\b)(?:recently|lately)\b")), _recent),
)

#: "since the release", "since our last deployment", "since we moved to Postgres".
_ANCHOR: Final = re.compile(
    r"\bsince\s{1,4}(?:the|our|my|we|i|last)\s{1,4}"
    r"(?P<anchor>[\w./-]{1,60}(?:\s{1,4}[\w./-]{1,60}){0,3})\s{0,4}(?=[?.!,;]|$)",
    re.I,
)

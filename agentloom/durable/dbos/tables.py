"""The tables and functions of our own in a PostgreSQL database, beside those of DBOS."""

from __future__ import annotations

from agentloom.durable.dbos.place import SCHEMA, Place
from agentloom.durable.dbos.sessions import ANSWER_S, session_of

PREPARING = 4714
"""The number of the advisory lock of whoever makes them: `IF NOT EXISTS` alone fails when two do so at once."""

RATES = f"{SCHEMA}.provider_rates"
"""When the next call to a provider may begin, in seconds of the database's clock, as far as requests and tokens go."""

TAKE_TURNS = f"{SCHEMA}.take_turns_1"
"""Takes turns at a provider. Another function needs another name: workers of the version before still call this one."""

NEEDS = f"{SCHEMA}.needs"
"""What runs need that some worker lacked, or that somebody asked about, by a key."""

LACKS = f"{SCHEMA}.lacks"
"""What each worker lacks of that; nothing is lacking when it can perform such runs."""

WORKERS = f"{SCHEMA}.workers"
"""The workers by name, with the numbers of the locks that tell who lives."""

DEBT_S = 600.0
"""Replies of more tokens than a minute may have keep later calls away so many seconds at most, also after the clock was put back."""

FULL = -1.0
"""The wait for a slot: nobody knows how long it takes."""

# One call of one function: a worker that is stopped between two statements would hold the row, and with it all others.
_TAKE_TURNS = f"""
CREATE OR REPLACE FUNCTION {TAKE_TURNS}(
    provider text, request_s float8, token_s float8, lead_requests float8, lead_tokens float8,
    most int, base bigint, held int[], tokens bigint[], INOUT is_told boolean,
    OUT calls int, OUT slots int[], OUT wait_s float8
) LANGUAGE plpgsql AS $$
DECLARE
    is_rated boolean := request_s > 0 OR token_s > 0;
    at_request float8 := 0;
    at_token float8 := 0;
    moment float8;
    slot int := 0;
    amount bigint;
BEGIN
    calls := 0; slots := '{{}}'; wait_s := 0;
    IF is_rated THEN
        SELECT requests_at, tokens_at INTO at_request, at_token FROM {RATES} WHERE name = provider FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO {RATES} (name) VALUES (provider) ON CONFLICT DO NOTHING;
            SELECT requests_at, tokens_at INTO at_request, at_token FROM {RATES} WHERE name = provider FOR UPDATE;
        END IF;
    END IF;
    moment := extract(epoch FROM clock_timestamp());
    at_request := least(at_request, moment + lead_requests + request_s);
    at_token := least(at_token, moment + {DEBT_S});
    FOREACH amount IN ARRAY tokens LOOP
        wait_s := greatest(0, at_request - moment - lead_requests, at_token - moment - lead_tokens);
        EXIT WHEN wait_s > 0;
        IF most IS NOT NULL THEN
            LOOP
                slot := slot + 1;
                EXIT WHEN slot > most;
                CONTINUE WHEN slot = ANY (held);
                EXIT WHEN pg_try_advisory_lock(base + slot);
            END LOOP;
            IF slot > most THEN
                wait_s := {FULL};
                is_told := is_told OR pg_try_advisory_lock_shared(base);
                EXIT;
            END IF;
            slots := slots || slot;
        END IF;
        calls := calls + 1;
        at_request := greatest(at_request, moment) + request_s;
        at_token := greatest(at_token, moment) + amount * token_s;
    END LOOP;
    IF is_rated AND calls > 0 THEN
        UPDATE {RATES} SET requests_at = at_request, tokens_at = at_token WHERE name = provider;
    END IF;
END $$
"""

# Not logged: after a crash of the server the moments that were kept are over.
_MAKE = (
    f"CREATE UNLOGGED TABLE IF NOT EXISTS {RATES} (name text PRIMARY KEY,"
    " requests_at float8 NOT NULL DEFAULT 0, tokens_at float8 NOT NULL DEFAULT 0) WITH (fillfactor = 50)",
    f"CREATE TABLE IF NOT EXISTS {NEEDS} (key text PRIMARY KEY, needs jsonb NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS {WORKERS} (name text PRIMARY KEY, number bigint NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS {LACKS} (key text, worker text, lacks jsonb NOT NULL, PRIMARY KEY (key, worker))",
    _TAKE_TURNS,
)


def prepare(place: Place) -> None:
    """Make what isn't there yet. Raises what psycopg raises."""
    with session_of(place, ANSWER_S) as session:
        found = session.execute(b"SELECT to_regproc(%s), to_regclass(%s)", (TAKE_TURNS, LACKS)).fetchone()
        if found is not None and None not in found:
            return  # all is there
        with session.transaction():
            session.execute(f"SELECT pg_advisory_xact_lock({PREPARING}, 0)".encode())
            for statement in _MAKE:
                session.execute(statement.encode())

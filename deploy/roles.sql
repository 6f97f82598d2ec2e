-- Three roles with the least rights for durable runs, and none for anybody else.
--
-- Who owns the tables is who prepared the database. As that role, after `agentloom worker --prepare`:
--
--     psql -f deploy/roles.sql postgresql://OWNER@HOST/loom
--
-- The roles have no password: give each login of yours one of them (`GRANT loom_worker TO anna`), or make them logins themselves
-- (`ALTER ROLE loom_worker LOGIN`, `\password loom_worker`). After an upgrade of agentloom: `worker --prepare` as the owner again.

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['loom_worker', 'loom_client', 'loom_reader'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
END
$$;

GRANT USAGE ON SCHEMA agentloom TO loom_worker, loom_client, loom_reader;

-- `agentloom worker` and `runs prune`: rows, and no tables.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agentloom TO loom_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA agentloom TO loom_worker;
REVOKE INSERT, UPDATE, DELETE ON agentloom.dbos_migrations FROM loom_worker;

-- `run`, `resume`, `cancel`, `callback-server`: ask for a segment of a run, and call one off. What happened in a run it can read, and not change.
GRANT SELECT ON ALL TABLES IN SCHEMA agentloom TO loom_client;
GRANT INSERT, UPDATE ON agentloom.workflow_status TO loom_client;
GRANT INSERT ON agentloom.workflow_input TO loom_client;
GRANT INSERT ON agentloom.needs TO loom_client;

-- `runs`, `runs show`, `history`.
GRANT SELECT ON ALL TABLES IN SCHEMA agentloom TO loom_reader;

-- Tables that an upgrade makes.
ALTER DEFAULT PRIVILEGES IN SCHEMA agentloom GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO loom_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA agentloom GRANT USAGE ON SEQUENCES TO loom_worker;
ALTER DEFAULT PRIVILEGES IN SCHEMA agentloom GRANT SELECT ON TABLES TO loom_client, loom_reader;

-- The fence in PostgreSQL, 14 or later: two tables and the functions that use them.
--
-- It may be run as often as you like, by the owner of the schema. Everything is made in the first schema of the search path:
--     psql --single-transaction --file migration.sql                                         -- public, most of the time
--     PGOPTIONS='-c search_path=jobs' psql --single-transaction --file migration.sql         -- the schema jobs, which must exist
--
-- Roles that write need, besides EXECUTE on the functions, which everybody has:
--     GRANT SELECT, INSERT, UPDATE ON leasehold_fence TO app;
--     GRANT SELECT, INSERT, DELETE ON leasehold_refusal TO app;

-- Two programs that migrate at the same moment would disturb each other.
SELECT pg_advisory_xact_lock(hashtextextended('leasehold_fence: migration', 0));

-- The highest token of every fence name. Nothing reads raised_at but people: no outcome depends on a clock.
CREATE TABLE IF NOT EXISTS leasehold_fence (
    name      text PRIMARY KEY CHECK (name <> '' AND octet_length(name) <= 544 AND name !~ '[\u0001-\u001f\u007f]'),
    token     bigint NOT NULL CHECK (token > 0),
    holder    text CHECK (octet_length(holder) <= 256),
    raised_at timestamptz
);

-- The last 16 refusals of every fence name, for people.
CREATE TABLE IF NOT EXISTS leasehold_refusal (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text NOT NULL,
    token   bigint NOT NULL,
    highest bigint NOT NULL,
    holder  text,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS leasehold_refusal_of_name ON leasehold_refusal (name, id);

-- Which advisory lock is the gate of a fence name. Two names with one gate would wait for each other at worst.
CREATE OR REPLACE FUNCTION leasehold_gate(name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(name, 5501230733);

-- The check. It is the first statement of a transaction whose writes are to be fenced:
--
--     BEGIN;  SELECT leasehold_enter('reports/nightly', 34, 'worker-3');  UPDATE ...;  COMMIT;
--
-- A token below the highest raises LH001, with the highest token as DETAIL, and so ends the transaction whether anybody looks or
-- not. Otherwise the fence row has this token and is locked until the transaction ends: shared if it had the token before, else
-- exclusively.
--
-- Why that is right under READ COMMITTED, where every statement below has a snapshot of its own:
--
--   (1) Who leaves by `highest = token` has the row locked, shared or exclusively, in a version with this token. Whoever raises
--       it must update the row, which conflicts with both locks. So until this transaction ends the highest token is its own: it
--       commits before any greater token is let in, or not at all.
--   (2) The shared lock is on the newest version. If the row changed between snapshot and lock, PostgreSQL waits for the other
--       transaction, follows the row to its newest version and evaluates the WHERE again on that. Tokens only rise, so it still
--       holds, and `highest` is the newest one.
--   (3) If the first SELECT finds nothing, the row was missing or lower in its snapshot. It may have been raised since, so that
--       decides nothing: the upsert does. It locks the conflicting row, waiting if it must, and evaluates its WHERE on the newest
--       version. The lock stays even where that WHERE is false; so the last SELECT, which has a snapshot taken after the lock,
--       reads a row that nobody else can change.
--   (4) Two first writers: neither has a shared lock that it would have to upgrade, because a row with a lower token is not
--       locked by the SELECT. The second one waits in front of the gate, or for the upsert, with nothing in its hands.
--
-- Under REPEATABLE READ and SERIALIZABLE all statements have one snapshot. If the row was changed after it, both the locking
-- SELECT and the upsert fail with a serialization failure (40001): the transaction is to be tried again. If it was not changed
-- after it, the snapshot shows the newest version. So an old snapshot never lets a stale token in.
--
-- The gate decides nothing and could be left out of (1) to (4). It is there because PostgreSQL lets a further sharer of a row
-- pass an exclusive locker who waits: with old writers whose transactions overlap, a raise would wait until there happened to be
-- none. Advisory locks queue. Everybody takes the gate before the row (in the SELECT by its WHERE, which is evaluated before the
-- row is locked, and by CASE only for a row that will be shared), so the two do not deadlock.
--
-- The names of tables are put in when the function is made, so that the caller's search path does not matter: a setting of the
-- function's own would do the same for half as much again of its time.
DO $migration$
BEGIN
EXECUTE replace($create$
CREATE OR REPLACE FUNCTION leasehold_enter(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    gate    bigint := @schema@.leasehold_gate(leasehold_enter.name);
    highest bigint;
    whose   text;
    here    text;
    entered text;
BEGIN
    SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
        WHERE f.name = leasehold_enter.name
            AND CASE WHEN f.token >= leasehold_enter.token THEN pg_advisory_xact_lock_shared(gate) IS NOT NULL END
        FOR SHARE;
    IF NOT FOUND THEN
        PERFORM pg_advisory_xact_lock(gate);
        INSERT INTO @schema@.leasehold_fence AS f (name, token, holder, raised_at)
            VALUES (leasehold_enter.name, leasehold_enter.token, leasehold_enter.holder, clock_timestamp())
            ON CONFLICT (name) DO UPDATE
                SET token = excluded.token, holder = excluded.holder, raised_at = excluded.raised_at
                WHERE f.token < excluded.token
            RETURNING f.token INTO highest;
        IF FOUND THEN
            -- A raise that was acknowledged must not be forgotten by a crash.
            IF current_setting('synchronous_commit') = 'off' THEN
                PERFORM set_config('synchronous_commit', 'on', true);
            END IF;
        ELSE
            SELECT f.token, f.holder INTO STRICT highest, whose FROM @schema@.leasehold_fence f
                WHERE f.name = leasehold_enter.name;
        END IF;
    END IF;

    IF highest > leasehold_enter.token THEN
        RAISE EXCEPTION USING
            ERRCODE = 'LH001',
            MESSAGE = format('token %s of %s is stale: the receiver has seen %s; nothing was written',
                             leasehold_enter.token, leasehold_enter.name, highest),
            DETAIL = highest::text,
            HINT = format('%s has it now; end this transaction and stop acting on %s',
                          coalesce(whose, 'another holder'), leasehold_enter.name);
    END IF;

    -- For leasehold_require. It is undone with the locks: at the end of the transaction, and by ROLLBACK TO a savepoint before it.
    here := pg_current_xact_id()::text || E'\n';
    entered := current_setting('leasehold.stamp', true);
    IF entered IS NULL OR NOT starts_with(entered, here) THEN
        entered := here;
    END IF;
    IF strpos(entered, E'\n' || leasehold_enter.name || E'\n') = 0 THEN
        entered := set_config('leasehold.stamp', entered || leasehold_enter.name || E'\n', true);
    END IF;
END
$$;
$create$, '@schema@', quote_ident(current_schema()));
END
$migration$;

-- Raises the fence without writing anything, and says who is in the way if that takes longer than lock_timeout (SET LOCAL it before:
-- without one it waits for ever). Whoever is in the way is a transaction that entered and was not ended.
CREATE OR REPLACE FUNCTION leasehold_seal(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    pids  text;
    about text;
BEGIN
    PERFORM leasehold_enter(leasehold_seal.name, leasehold_seal.token, leasehold_seal.holder);
EXCEPTION WHEN lock_not_available THEN
    SELECT string_agg(l.pid::text, ', ' ORDER BY l.pid),
           string_agg(format('backend %s: user %s, application %s, from %s, %s, its transaction began at %s', l.pid,
                             coalesce(a.usename, '?'), coalesce(nullif(a.application_name, ''), '?'),
                             coalesce(host(a.client_addr), 'a local socket'), coalesce(a.state, '?'),
                             coalesce(a.xact_start::text, '?')), E'\n' ORDER BY l.pid)
        INTO pids, about
        FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.pid <> pg_backend_pid()
            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
            AND (l.classid::bigint << 32 | l.objid::bigint) = leasehold_gate(leasehold_seal.name);
    IF pids IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'lock_not_available',
            MESSAGE = format('the fence of %s was locked for longer than lock_timeout (%s); nothing was raised',
                             leasehold_seal.name, current_setting('lock_timeout')),
            HINT = 'seal again. If it happens again, no open transaction that entered is in the way, but a prepared one '
                   '(pg_prepared_xacts) or another lock on the row (pg_blocking_pids while this waits)';
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'lock_not_available',
        MESSAGE = format('the fence of %s is kept by an open transaction of backend %s for longer than lock_timeout (%s); nothing was raised',
                         leasehold_seal.name, pids, current_setting('lock_timeout')),
        DETAIL = about,
        HINT = format('if its client does not end it, SELECT pg_terminate_backend(%s) rolls it back; then seal again', pids);
END
$$;

-- Notes a refusal, for people. Call it after the ROLLBACK: what a refused transaction writes is undone with it.
CREATE OR REPLACE FUNCTION leasehold_refused(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO leasehold_refusal (name, token, highest, holder)
        SELECT f.name, leasehold_refused.token, f.token, leasehold_refused.holder FROM leasehold_fence f
            WHERE f.name = leasehold_refused.name AND f.token > leasehold_refused.token;
    DELETE FROM leasehold_refusal r
        WHERE r.name = leasehold_refused.name AND r.id <= (
            SELECT k.id FROM leasehold_refusal k WHERE k.name = leasehold_refused.name ORDER BY k.id DESC OFFSET 16 LIMIT 1);
END
$$;

-- Whether this transaction has entered the fence. The number of the transaction is part of the setting, so that a setting left
-- behind by somebody is none. It helps against forgetting, not against somebody who makes it up.
CREATE OR REPLACE FUNCTION leasehold_entered(name text) RETURNS boolean
LANGUAGE sql STABLE
RETURN coalesce(
    starts_with(current_setting('leasehold.stamp', true), pg_current_xact_id_if_assigned()::text || E'\n')
        AND strpos(current_setting('leasehold.stamp', true), E'\n' || name || E'\n') > 0,
    false);

-- A trigger for tables all of whose rows are protected by one fence:
--
--     CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON report
--         FOR EACH STATEMENT EXECUTE FUNCTION leasehold_require('reports/nightly');
--
-- A partitioned table needs it FOR EACH ROW (without TRUNCATE), which its partitions inherit: a statement that names a partition
-- does not fire the statement triggers of the table above it.
CREATE OR REPLACE FUNCTION leasehold_require() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_NARGS <> 1 THEN
        RAISE EXCEPTION 'trigger % of % needs one argument, the fence name', TG_NAME, TG_TABLE_NAME;
    END IF;
    IF NOT leasehold_entered(TG_ARGV[0]) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'LH002',
            MESSAGE = format('%s of %s without a token: this transaction has not entered the fence %s; nothing was written',
                             lower(TG_OP), TG_TABLE_NAME, TG_ARGV[0]),
            HINT = format('begin the transaction with SELECT leasehold_enter(%L, TOKEN)', TG_ARGV[0]);
    END IF;
    IF TG_LEVEL = 'STATEMENT' THEN
        RETURN NULL;
    ELSIF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$$;

-- A trigger for tables whose rows are protected by different fences. The first argument is the column that tells which, the second,
-- if there is one, is put in front of its value:
--
--     CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON invoice
--         FOR EACH ROW EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/');
--     CREATE TRIGGER fenced_truncate BEFORE TRUNCATE ON invoice
--         FOR EACH STATEMENT EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/');
--
-- A row that moves from one fence to another needs both. TRUNCATE takes rows of all of them, and is refused.
CREATE OR REPLACE FUNCTION leasehold_require_column() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    fences text[];
    fence  text;
BEGIN
    IF TG_NARGS NOT IN (1, 2) THEN
        RAISE EXCEPTION 'trigger % of % needs a column and, if you like, what stands before its value', TG_NAME, TG_TABLE_NAME;
    END IF;
    IF TG_LEVEL = 'STATEMENT' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'LH002',
            MESSAGE = format('%s of %s takes rows of every fence, and no transaction has entered them all; nothing was written',
                             lower(TG_OP), TG_TABLE_NAME),
            HINT = 'delete the rows of one fence at a time, in a transaction that has entered it';
    END IF;
    IF TG_OP <> 'INSERT' THEN
        fences := ARRAY[to_jsonb(OLD) ->> TG_ARGV[0]];
    END IF;
    IF TG_OP <> 'DELETE' THEN
        fences := fences || (to_jsonb(NEW) ->> TG_ARGV[0]);
    END IF;
    FOREACH fence IN ARRAY fences LOOP
        IF fence IS NULL OR NOT leasehold_entered(coalesce(TG_ARGV[1], '') || fence) THEN
            RAISE EXCEPTION USING
                ERRCODE = 'LH002',
                MESSAGE = format('%s of %s without a token: this transaction has not entered the fence %s; nothing was written',
                                 lower(TG_OP), TG_TABLE_NAME,
                                 coalesce(coalesce(TG_ARGV[1], '') || fence, format('of a row whose %s is null', TG_ARGV[0]))),
                HINT = 'begin the transaction with SELECT leasehold_enter(NAME, TOKEN)';
        END IF;
    END LOOP;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$$;

-- The other functions find the tables, and each other, by a search path of their own.
DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY[
        'leasehold_seal(text, bigint, text)', 'leasehold_refused(text, bigint, text)',
        'leasehold_require()', 'leasehold_require_column()']
    LOOP
        EXECUTE format('ALTER FUNCTION %I.%s SET search_path = %I, pg_temp', current_schema(), one, current_schema());
    END LOOP;
END
$$;

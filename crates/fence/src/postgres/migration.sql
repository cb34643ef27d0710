-- The fence in PostgreSQL, 14 or later: two tables and the functions that use them.
--
-- It may be run as often as you like, by the owner of the schema. Everything is made in the first schema of the search path:
--     psql --single-transaction --file migration.sql                                         -- public, most of the time
--     PGOPTIONS='-c search_path=jobs' psql --single-transaction --file migration.sql         -- the schema jobs, which must exist
--
-- Roles that write need, besides EXECUTE on the functions, which everybody has:
--     GRANT SELECT, INSERT, UPDATE ON leasehold_fence TO app;
--     GRANT SELECT, INSERT, DELETE ON leasehold_refusal TO app;

-- Two programs that migrate one schema at the same moment would disturb each other.
SELECT pg_advisory_xact_lock(hashtextextended('leasehold_fence: migration of ' || current_schema(), 0));

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

-- Some words are put into the functions when they are made. @schema@, or @quoted@ as text, is the schema, so that the caller's search path
-- does not matter: a setting of each function's own would do the same for half as much again of its time. @here@ is a number made from the
-- schema: fences of one name in two schemas are two fences, so it is part of the gate and of what a transaction is said to have entered.
DO $migration$
BEGIN
EXECUTE replace(replace(replace($create$

-- Which advisory lock is the gate of a fence name. Two names with one gate would wait for each other at worst.
CREATE OR REPLACE FUNCTION leasehold_gate(name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(name, @here@);

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
--   (2) The shared lock is on the newest version. If the row changed between snapshot and lock, PostgreSQL follows it to its newest
--       version and evaluates the WHERE again on that. Tokens only rise, so `highest` is the newest one.
--   (3) If the first SELECT finds nothing, the row was missing, lower or not to be had at once. That decides nothing:
--       leasehold_enter_late does, which waits. If it has to raise, its upsert locks the conflicting row and evaluates
--       its WHERE on the newest version. The lock stays even where that WHERE is false; so the SELECT behind it, which has a
--       snapshot taken after the lock, reads a row that nobody else can change.
--   (4) Two first writers: neither has a shared lock that it would have to upgrade, because a row with a lower token is not
--       locked by the SELECT. The second one waits in front of the gate, or for the upsert, with nothing in its hands.
--
-- Under REPEATABLE READ and SERIALIZABLE all statements have one snapshot. If the row was changed after it, both the locking
-- SELECT and the upsert fail with a serialization failure (40001): the transaction is to be tried again. If it was not changed
-- after it, the snapshot shows the newest version. So an old snapshot never lets a stale token in. Nor does it let a new holder decide on
-- what an old one has overwritten since: see leasehold_enter_late.
--
-- The gate decides nothing in (1) to (4) and could be left out of them. It is there because PostgreSQL lets a further sharer of a row
-- pass an exclusive locker who waits: with old writers whose transactions overlap, a raise would wait until there happened to be
-- none. Advisory locks queue, and one that is asked for without waiting is not given past somebody who waits. Everybody takes the
-- gate before the row (in the SELECT by its WHERE, which is evaluated before the row is locked, and by CASE only for a row that
-- will be shared), so the two do not deadlock.
CREATE OR REPLACE FUNCTION leasehold_enter(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    highest bigint;
    whose   text;
    here    text;
    entered text;
BEGIN
    SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
        WHERE f.name = leasehold_enter.name
            AND CASE WHEN f.token = leasehold_enter.token
                THEN pg_try_advisory_xact_lock_shared(hashtextextended(leasehold_enter.name, @here@))
                ELSE f.token > leasehold_enter.token END
        FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT late.highest, late.whose INTO highest, whose
            FROM @schema@.leasehold_enter_late(leasehold_enter.name, leasehold_enter.token, leasehold_enter.holder) late;
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

    -- For leasehold_entered. It is undone with the locks: at the end of the transaction, and by ROLLBACK TO a savepoint before it.
    here := pg_current_xact_id()::text || E'\n';
    entered := current_setting('leasehold.stamp', true);
    IF entered IS NULL OR NOT starts_with(entered, here) THEN
        entered := set_config('leasehold.stamp', here || '@here@ ' || leasehold_enter.name || E'\n', true);
    ELSIF strpos(entered, E'\n@here@ ' || leasehold_enter.name || E'\n') = 0 THEN
        entered := set_config('leasehold.stamp', entered || '@here@ ' || leasehold_enter.name || E'\n', true);
    END IF;
END
$function$;

-- The part of an entry that may have to wait, or to raise. It gives back the highest token, in a row that it has locked if it is not above
-- the one that was brought.
--
-- It waits at the gate, and for the row, for as long as the setting leasehold.patience says; without one as long as lock_timeout, and
-- without that for 5 seconds. lock_timeout is as it was when it returns. Whoever is in the way is named.
--
-- Above READ COMMITTED the snapshot is older than the end of a wait. Somebody with an older token may have committed in between, and
-- whoever is let in then would decide on what is no longer so. So a wait at the gate becomes a serialization failure, when it is over and trying
-- again helps. A raise that did not have to wait may still have a snapshot from before the last commit of an older token. Those who
-- share the row leave their mark on it, xmax: a transaction, or several as one multixact; nothing tells which, so it is read as both. All that
-- had it before the last ones had ended when those came.
CREATE OR REPLACE FUNCTION leasehold_enter_late(name text, token bigint, holder text, OUT highest bigint, OUT whose text)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    gate      bigint := hashtextextended(leasehold_enter_late.name, @here@);
    is_frozen boolean := current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted');
    is_shared boolean;
    is_open   boolean; -- Whether it may be passed without a wait, and the snapshot is not older than the last who did.
    mark      xid;
    before    text := current_setting('lock_timeout');
BEGIN
    SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f WHERE f.name = leasehold_enter_late.name;
    IF highest > leasehold_enter_late.token THEN
        RETURN;
    END IF;
    is_shared := coalesce(highest = leasehold_enter_late.token, false);
    is_open := CASE WHEN is_shared THEN pg_try_advisory_xact_lock_shared(gate) ELSE pg_try_advisory_xact_lock(gate) END;
    PERFORM set_config('lock_timeout',
        coalesce(nullif(current_setting('leasehold.patience', true), ''), nullif(before, '0'), '5s'), true);
    BEGIN
        IF NOT is_open AND is_shared THEN
            PERFORM pg_advisory_xact_lock_shared(gate);
        ELSIF NOT is_open THEN
            PERFORM pg_advisory_xact_lock(gate);
        END IF;
        -- Behind the gate, where nobody can leave a mark any more.
        IF is_frozen AND is_open AND NOT is_shared THEN
            SELECT f.xmax INTO mark FROM @schema@.leasehold_fence f WHERE f.name = leasehold_enter_late.name;
            is_open := NOT @schema@.leasehold_is_recent(mark);
        END IF;
        IF is_frozen AND NOT is_open THEN
            RAISE EXCEPTION USING
                ERRCODE = 'serialization_failure',
                MESSAGE = format('could not serialize access: transactions that had entered the fence of %s ended after the snapshot of this one',
                                 leasehold_enter_late.name),
                HINT = 'try the whole transaction again. If that does not help, seal first: SELECT leasehold_seal(NAME, TOKEN) in a '
                       'transaction of its own';
        END IF;
        IF is_shared THEN
            SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
                WHERE f.name = leasehold_enter_late.name FOR SHARE;
        ELSE
            INSERT INTO @schema@.leasehold_fence AS f (name, token, holder, raised_at)
                VALUES (leasehold_enter_late.name, leasehold_enter_late.token, leasehold_enter_late.holder, clock_timestamp())
                ON CONFLICT (name) DO UPDATE
                    SET token = excluded.token, holder = excluded.holder, raised_at = excluded.raised_at
                    WHERE f.token < excluded.token
                RETURNING f.token INTO highest;
            IF NOT FOUND THEN
                SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
                    WHERE f.name = leasehold_enter_late.name;
            ELSIF current_setting('synchronous_commit') = 'off' THEN
                -- A raise that was acknowledged must not be forgotten by a crash.
                PERFORM set_config('synchronous_commit', 'on', true);
            END IF;
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        PERFORM @schema@.leasehold_blocked(leasehold_enter_late.name);
    END;
    PERFORM set_config('lock_timeout', before, true);
    IF highest IS NULL OR highest < leasehold_enter_late.token THEN
        RAISE EXCEPTION USING
            ERRCODE = 'serialization_failure',
            MESSAGE = format('the row of the fence %s was lowered or deleted by hand meanwhile', leasehold_enter_late.name),
            HINT = 'try the whole transaction again';
    END IF;
END
$function$;

-- Whether somebody who left this mark on a row may have committed after the snapshot of this transaction was taken: it began after it, or was
-- in progress then and is committed now. A snapshot does not list savepoints, under whose number the mark may be; they have greater
-- numbers than their transaction.
CREATE OR REPLACE FUNCTION leasehold_is_recent(mark xid) RETURNS boolean
LANGUAGE plpgsql AS $function$
DECLARE
    next  bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
    marks bigint[] := ARRAY[mark::text::bigint];
    one   bigint;
BEGIN
    IF mark IS NULL OR marks[1] = 0 THEN
        RETURN false;
    END IF;
    BEGIN
        marks := marks || ARRAY(SELECT m.xid::text::bigint FROM pg_get_multixact_members(mark) m);
    EXCEPTION WHEN others THEN
        NULL; -- There is no such multixact.
    END;
    -- Marks have 32 bits, which go round; what is less than 2^31 ahead is ahead.
    FOREACH one IN ARRAY marks LOOP
        IF (one - next) & 4294967295 < 2147483648 OR EXISTS (
            SELECT FROM pg_snapshot_xip(pg_current_snapshot()) running
                WHERE running::text::bigint <= next - ((next - one) & 4294967295) AND pg_xact_status(running) = 'committed')
        THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$function$;

-- Says who has kept a fence for longer than lock_timeout, and how that is ended.
CREATE OR REPLACE FUNCTION leasehold_blocked(name text) RETURNS void
LANGUAGE plpgsql AS $function$
DECLARE
    pids     int[];
    prepared text[];
    about    text;
BEGIN
    WITH lock AS (
        SELECT l.pid, l.virtualtransaction FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(leasehold_blocked.name, @here@)
        UNION
        SELECT l.pid, l.virtualtransaction FROM pg_locks l JOIN @schema@.leasehold_fence f ON f.xmax = l.transactionid
            WHERE l.locktype = 'transactionid' AND l.granted AND f.name = leasehold_blocked.name
                -- The mark may be a multixact that happens to have the number of a transaction; that one does not use this table.
                AND EXISTS (SELECT FROM pg_locks r WHERE r.locktype = 'relation' AND r.relation = f.tableoid
                    AND r.virtualtransaction = l.virtualtransaction)
    ), backend AS (
        SELECT l.pid, NULL AS gid,
               format('backend %s: user %s, application %s, from %s, %s, its transaction began at %s', l.pid,
                      coalesce(a.usename, '?'), coalesce(nullif(a.application_name, ''), '?'),
                      coalesce(host(a.client_addr), 'a local socket'), coalesce(a.state, '?'),
                      coalesce(a.xact_start::text, '?')) AS words
            FROM lock l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.pid <> pg_backend_pid()
        UNION ALL
        SELECT NULL, p.gid, format('prepared transaction %L of user %s, prepared at %s', p.gid, p.owner, p.prepared)
            FROM lock l JOIN pg_prepared_xacts p ON l.pid IS NULL AND l.virtualtransaction = '-1/' || p.transaction::text
    )
    SELECT array_agg(b.pid ORDER BY b.pid) FILTER (WHERE b.pid IS NOT NULL),
           array_agg(b.gid ORDER BY b.gid) FILTER (WHERE b.gid IS NOT NULL),
           string_agg(b.words, E'\n' ORDER BY b.pid, b.gid)
        INTO pids, prepared, about FROM backend b;
    IF about IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'lock_not_available',
            MESSAGE = format('the fence of %s was locked for longer than lock_timeout (%s); nothing was written',
                             leasehold_blocked.name, current_setting('lock_timeout')),
            HINT = 'try again. If it happens again, somebody has another lock on its row: pg_blocking_pids while this waits';
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'lock_not_available',
        MESSAGE = format('the fence of %s is kept by %s for longer than lock_timeout (%s); nothing was written',
                         leasehold_blocked.name,
                         concat_ws(' and ', 'an open transaction of backend ' || array_to_string(pids, ', '),
                                   CASE WHEN prepared IS NOT NULL THEN 'a prepared transaction' END),
                         current_setting('lock_timeout')),
        DETAIL = about,
        HINT = concat_ws('; ', CASE
            WHEN cardinality(pids) = 1 THEN
                format('if its client does not end it, SELECT pg_terminate_backend(%s) rolls it back', pids[1])
            WHEN pids IS NOT NULL THEN
                format('if their clients do not end them, SELECT pg_terminate_backend(pid) FROM unnest(%L::int[]) pid rolls them back', pids)
            END,
            (SELECT string_agg(format('COMMIT PREPARED %L or ROLLBACK PREPARED %1$L ends it', gid), '; ') FROM unnest(prepared) gid),
            'then try again');
END
$function$;

-- Raises the fence without writing anything: an entry into a transaction that does nothing else. Whoever is in the way is a transaction
-- that entered and was not ended.
CREATE OR REPLACE FUNCTION leasehold_seal(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $function$
BEGIN
    PERFORM @schema@.leasehold_enter(leasehold_seal.name, leasehold_seal.token, leasehold_seal.holder);
END
$function$;

-- Notes a refusal, for people. Call it after the ROLLBACK: what a refused transaction writes is undone with it.
CREATE OR REPLACE FUNCTION leasehold_refused(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
    INSERT INTO @schema@.leasehold_refusal (name, token, highest, holder)
        SELECT f.name, leasehold_refused.token, f.token, leasehold_refused.holder FROM @schema@.leasehold_fence f
            WHERE f.name = leasehold_refused.name AND f.token > leasehold_refused.token;
    DELETE FROM @schema@.leasehold_refusal r
        WHERE r.name = leasehold_refused.name AND r.id <= (
            SELECT k.id FROM @schema@.leasehold_refusal k WHERE k.name = leasehold_refused.name
                ORDER BY k.id DESC OFFSET 16 LIMIT 1);
END
$function$;

-- Whether this transaction has entered the fence. The number of the transaction is part of the setting, so that a setting left
-- behind by somebody is none. It helps against forgetting, not against somebody who makes it up.
CREATE OR REPLACE FUNCTION leasehold_entered(name text) RETURNS boolean
LANGUAGE sql STABLE
RETURN coalesce(
    starts_with(current_setting('leasehold.stamp', true), pg_current_xact_id_if_assigned()::text || E'\n')
        AND strpos(current_setting('leasehold.stamp', true), E'\n@here@ ' || name || E'\n') > 0,
    false);

-- Raises LH003 unless this transaction has entered, and is the very one whose number was noted in leasehold.begun when it did: work that
-- commits and begins anew has left its fence in between, even if it enters again. Programs ask it in one message with their COMMIT:
--
--     BEGIN;  SELECT leasehold_enter(NAME, TOKEN), set_config('leasehold.begun', pg_current_xact_id()::text, true);  ...;
--     SELECT leasehold_still(NAME);  COMMIT;
CREATE OR REPLACE FUNCTION leasehold_still(name text) RETURNS void
LANGUAGE plpgsql AS $function$
BEGIN
    IF @schema@.leasehold_entered(leasehold_still.name)
        AND current_setting('leasehold.begun', true) = pg_current_xact_id_if_assigned()::text
    THEN
        RETURN;
    END IF;
    RAISE EXCEPTION USING
        ERRCODE = 'LH003',
        MESSAGE = format('this is not the transaction that entered the fence %s; what it wrote is rolled back', leasehold_still.name),
        HINT = 'the work ended its transaction itself; leave that to the fence';
END
$function$;

-- A trigger for tables all of whose rows are protected by one fence:
--
--     CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON report
--         FOR EACH STATEMENT EXECUTE FUNCTION leasehold_require('reports/nightly');
--
-- A statement that names a partition, or a child by INHERITS, does not fire the statement triggers of the table above it: leasehold_protect
-- makes those that such a table needs.
CREATE OR REPLACE FUNCTION leasehold_require() RETURNS trigger
LANGUAGE plpgsql AS $function$
BEGIN
    IF TG_NARGS <> 1 THEN
        RAISE EXCEPTION 'trigger % of % needs one argument, the fence name', TG_NAME, TG_TABLE_NAME;
    END IF;
    IF NOT @schema@.leasehold_entered(TG_ARGV[0]) THEN
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
$function$;

-- A trigger for tables whose rows are protected by different fences. The first argument is the column that tells which, the second,
-- if there is one, is put in front of its value:
--
--     CREATE TRIGGER fenced AFTER INSERT OR UPDATE OR DELETE ON invoice
--         FOR EACH ROW EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/');
--     CREATE TRIGGER fenced_truncate BEFORE TRUNCATE ON invoice
--         FOR EACH STATEMENT EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/');
--
-- AFTER, because it has to see the row as it is written: a BEFORE trigger may be followed by another that changes the column. A row that
-- moves from one fence to another needs both. TRUNCATE takes rows of all of them, and is refused.
CREATE OR REPLACE FUNCTION leasehold_require_column() RETURNS trigger
LANGUAGE plpgsql AS $function$
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
    IF TG_WHEN <> 'AFTER' THEN
        RAISE EXCEPTION 'trigger % of % is %, and another trigger may change % behind it; make it AFTER',
            TG_NAME, TG_TABLE_NAME, TG_WHEN, TG_ARGV[0];
    END IF;
    IF TG_OP <> 'INSERT' THEN
        fences := ARRAY[to_jsonb(OLD) ->> TG_ARGV[0]];
    END IF;
    IF TG_OP <> 'DELETE' THEN
        fences := fences || (to_jsonb(NEW) ->> TG_ARGV[0]);
    END IF;
    FOREACH fence IN ARRAY fences LOOP
        IF fence IS NULL OR NOT @schema@.leasehold_entered(coalesce(TG_ARGV[1], '') || fence) THEN
            RAISE EXCEPTION USING
                ERRCODE = 'LH002',
                MESSAGE = format('%s of %s without a token: this transaction has not entered the fence %s; nothing was written',
                                 lower(TG_OP), TG_TABLE_NAME,
                                 coalesce(coalesce(TG_ARGV[1], '') || fence, format('of a row whose %s is null', TG_ARGV[0]))),
                HINT = 'begin the transaction with SELECT leasehold_enter(NAME, TOKEN)';
        END IF;
    END LOOP;
    RETURN NULL;
END
$function$;

-- For leasehold_protect and leasehold_protect_rows.
CREATE OR REPLACE FUNCTION leasehold_make_triggers(protected regclass, required text, arguments text[]) RETURNS void
LANGUAGE plpgsql AS $function$
DECLARE
    one  record;
    call text := format('%s.%I(%s)', @quoted@, required, (SELECT string_agg(quote_literal(a), ', ') FROM unnest(arguments) a));
BEGIN
    FOR one IN
        WITH RECURSIVE below(oid) AS (
            VALUES (protected::oid) UNION SELECT i.inhrelid FROM pg_inherits i JOIN below b ON b.oid = i.inhparent)
        SELECT c.oid::regclass AS name, c.relispartition AND c.oid <> protected AS is_part,
               CASE WHEN required = 'leasehold_require' AND c.relkind <> 'p' THEN 'STATEMENT' ELSE 'ROW' END AS level
            FROM below JOIN pg_class c USING (oid)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER leasehold_fenced_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s',
                       one.name, call);
        -- Partitions have the row triggers of the table above them.
        IF NOT one.is_part THEN
            EXECUTE format('CREATE OR REPLACE TRIGGER leasehold_fenced AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH %s EXECUTE FUNCTION %s',
                           one.name, one.level, call);
        END IF;
    END LOOP;
END
$function$;

-- Makes the triggers of a table, its partitions and its children by INHERITS, or makes them anew:
--
--     SELECT leasehold_protect('report', 'reports/nightly');
--
-- Triggers for each row reach partitions that are added later by themselves. Triggers on TRUNCATE do not: call it again after adding one.
CREATE OR REPLACE FUNCTION leasehold_protect(protected regclass, fence text) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT @schema@.leasehold_make_triggers(protected, 'leasehold_require', ARRAY[fence]);
END;

-- The same for a table whose rows are protected by different fences:
--
--     SELECT leasehold_protect_rows('invoice', 'tenant', 'tenants/');
CREATE OR REPLACE FUNCTION leasehold_protect_rows(protected regclass, told_by name, prefix text DEFAULT '') RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    SELECT @schema@.leasehold_make_triggers(protected, 'leasehold_require_column', ARRAY[told_by::text, prefix]);
END;
$create$, '@here@', hashtextextended(current_schema(), 5501230733)::text),
    '@quoted@', quote_literal(quote_ident(current_schema()))), '@schema@', quote_ident(current_schema()));
END
$migration$;

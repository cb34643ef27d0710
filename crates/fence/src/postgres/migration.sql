-- The fence in PostgreSQL, 14 or later: two tables, a sequence, and the functions that use them.
--
-- It may be run as often as you like, by the owner of the schema. Everything is made in the first schema of the search path:
--     psql --single-transaction --file migration.sql                                         -- public, most of the time
--     PGOPTIONS='-c search_path=jobs' psql --single-transaction --file migration.sql         -- the schema jobs, which must exist
--
-- Roles that write need, besides EXECUTE on the functions and USAGE of the sequence, which everybody has:
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

-- Moves whenever a row of the fences is changed or removed, see leasehold_enter. It begins somewhere: a session that has noted where
-- it stood, in a schema that was dropped and made again meanwhile, is not to find it there by chance. CACHE 1, or it would not move each time.
DO $migration$
BEGIN
IF to_regclass(quote_ident(current_schema()) || '.leasehold_raises') IS NULL THEN
    EXECUTE format('CREATE SEQUENCE leasehold_raises START %s CACHE 1', 1 + floor(random() * 4e18)::bigint);
    PERFORM nextval('leasehold_raises');
    -- Whoever enters moves it or looks at it, and who moves it without need makes others read a row.
    GRANT USAGE ON SEQUENCE leasehold_raises TO PUBLIC;
END IF;
END
$migration$;

-- Some words are put into the functions when they are made. @schema@, or @quoted@ as text, is the schema, so that the caller's search path
-- does not matter: a setting of each function's own would do the same for half as much again of its time. @here@ is a number made from the
-- schema: fences of one name in two schemas are two fences, so it is part of the gate and of what a transaction is said to have entered.
--
-- @known@ is whether this session knows that the row has this token, and has the gate; @again@ notes the entry too, if it is the first of its
-- transaction. See leasehold_enter for why that is right. They are expressions because most of the time of an entry goes into getting ready:
-- statements, and parts of expressions, are set up anew in each transaction. CASE decides what is evaluated, and in which order. What is
-- known has names in lines, so a name of two lines is not looked for.
DO $migration$
DECLARE
    known CONSTANT text := $known$
        (CASE WHEN strpos(current_setting('leasehold.known', true), E'\n@here@ ' || token::text || ' ' || name || E'\n') > 0
                AND strpos(name, E'\n') = 0
                AND current_setting('transaction_isolation') = 'read committed'
            THEN CASE WHEN pg_try_advisory_xact_lock_shared(hashtextextended(name, @here@))
                THEN pg_sequence_last_value(@raises@)::text = current_setting('leasehold.raises', true) END END)$known$;
    again CONSTANT text := $again$
        (CASE WHEN coalesce(current_setting('leasehold.stamp', true), '') = ''
            THEN CASE WHEN @known@
                THEN set_config('leasehold.stamp', pg_current_xact_id()::text || E'\n@here@ ' || name || E'\n', true) <> '' END END)$again$;
BEGIN
EXECUTE replace(replace(replace(replace(replace(replace($create$

-- Which advisory lock is the gate of a fence name. Two names with one gate would wait for each other at worst.
CREATE OR REPLACE FUNCTION leasehold_gate(name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(name, @here@);

-- The check. It is the first statement of a transaction whose writes are to be fenced:
--
--     BEGIN;  SELECT leasehold_enter('reports/nightly', 34, 'worker-3');  UPDATE ...;  COMMIT;
--
-- A token below the highest raises LH001, with the highest token as DETAIL, and so ends the transaction whether anybody looks or
-- not. Otherwise the fence row has this token, and the gate of the name is locked until the transaction ends: shared if the row had the token
-- before, else exclusively.
--
-- Why that is right under READ COMMITTED, where every statement below has a snapshot of its own:
--
--   (1) Whoever changes a row has its gate exclusively from before the change to the end of the transaction, and has moved leasehold_raises on
--       in between. The trigger leasehold_by_hand sees to both, whoever it is: these functions, those of an older migration, or
--       somebody by hand. PostgreSQL gives up the locks of a transaction after everybody can see that it has committed, also where it
--       was prepared before.
--   (2) leasehold_enter_late takes the gate and reads the row in a statement that begins behind it. By (1) every change had either ended
--       before, and that snapshot shows it, or waits for the end of this transaction. So until then the highest token is its own: it commits
--       before any greater token is let in, or not at all. The row is not locked: each sharer of a row writes to its page, and
--       the more of them there are the more each writes.
--   (3) If it found the token there, and this transaction itself had written nothing yet (so that it was committed, whatever becomes of
--       this transaction, which may be prepared and rolled back by somebody else), it notes for the session what it found and where leasehold_raises
--       stood behind the gate. The next entry of the session under the same name and token takes the gate, and then looks where
--       leasehold_raises stands. If it has not moved, nobody has changed a row since the note, and by (1) nobody can change this one
--       before the end of this transaction. So the row is as it was, and is not read at all. A sequence is not part of a transaction: who looks sees
--       the newest, whatever the snapshot. It moves for changes of other names, and for those that are rolled back, too: then the row is read.
--   (4) The gate comes before the look, in (2) and in (3). The other way round a raise may commit between the two, and a stale token is let in.
--   (5) Whoever has the gate shared does not ask for it exclusively: two first writers that did would wait for each other. So it is asked for
--       shared only where the row has been seen with this token; tokens only rise. If somebody has lowered one by hand, two who raise it
--       again may deadlock, which PostgreSQL ends.
--   (6) If the gate is not to be had at once, or nothing was noted, that decides nothing: leasehold_enter_late does, which waits. If it has to
--       raise, its upsert locks the conflicting row and evaluates its WHERE on the newest version. The lock stays even where
--       that WHERE is false; so the SELECT behind it, which has a snapshot taken after the lock, reads a row that nobody else can change.
--
-- Under REPEATABLE READ and SERIALIZABLE all statements have one snapshot, which may be older than the gate. So there the row is locked too:
-- if it was changed after the snapshot, both the locking SELECT and the upsert fail with a serialization failure (40001), and the
-- transaction is to be tried again. If it was not changed after it, the snapshot shows the newest version. So an old snapshot never
-- lets a stale token in. Nor does it let a new holder decide on what an old one has overwritten since: see leasehold_enter_late.
--
-- Advisory locks queue, and one that is asked for without waiting is not given past somebody who waits: old writers whose transactions overlap
-- do not keep a raise waiting for ever, as sharers of a row would. Everybody takes the gate before the row (in the locking SELECT by its
-- WHERE, which is evaluated before the row is locked, and by CASE only for a row that will be shared), so the two do not deadlock.
CREATE OR REPLACE FUNCTION leasehold_enter(name text, token bigint, holder text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $function$
#variable_conflict use_variable
DECLARE
    highest bigint;
    whose   text;
    here    text;
    entered text;
BEGIN
    IF @again@ THEN
        RETURN;
    ELSIF @known@ THEN
        highest := token;
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
            WHERE f.name = leasehold_enter.name
                AND CASE WHEN f.token = leasehold_enter.token
                    THEN pg_try_advisory_xact_lock_shared(hashtextextended(leasehold_enter.name, @here@))
                    ELSE f.token > leasehold_enter.token END
            FOR SHARE SKIP LOCKED;
    END IF;
    IF highest IS NULL OR highest < leasehold_enter.token THEN
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

-- The part of an entry that may have to wait, or to raise. It gives back the highest token, behind the gate if it is not above the one that
-- was brought.
--
-- It waits at the gate, and for the row, for as long as the setting leasehold.patience says; without one as long as lock_timeout, and
-- without that for 5 seconds. lock_timeout is as it was when it returns. Whoever is in the way is named.
--
-- Above READ COMMITTED the snapshot is older than the end of a wait. Somebody with an older token may have committed in between, and
-- whoever is let in then would decide on what is no longer so. So a wait at the gate becomes a serialization failure, when it is over and trying
-- again helps. A raise that did not have to wait may still have a snapshot from before the last commit of an older token: so does one
-- that finds that anybody has committed since its snapshot was taken, see leasehold_is_recent.
CREATE OR REPLACE FUNCTION leasehold_enter_late(name text, token bigint, holder text, OUT highest bigint, OUT whose text)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    gate      bigint := hashtextextended(leasehold_enter_late.name, @here@);
    is_frozen boolean := current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted');
    is_shared boolean;
    is_open   boolean; -- Whether it was passed without a wait.
    had       bigint;
    mark      xid; -- Given behind the gate.
    raises    text;
    known     text;
    line      text;
    longest   CONSTANT int := 4000; -- More would take longer to look through than a row takes to read.
    before    text := current_setting('lock_timeout');
    bytes     int := coalesce(octet_length(leasehold_enter_late.name), 0);
BEGIN
    -- Here, because whatever is known already has been here before.
    IF bytes NOT BETWEEN 1 AND 544 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('a fence name of %s bytes is outside 1 to 544 bytes; nothing was written', bytes),
            HINT = 'give the name of what is protected, such as reports/nightly';
    ELSIF coalesce(leasehold_enter_late.token, 0) < 1 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('token %s of %s is outside 1 to 9223372036854775807; nothing was written',
                             coalesce(leasehold_enter_late.token::text, 'NULL'), leasehold_enter_late.name),
            HINT = 'give the token of the lease: LEASEHOLD_TOKEN, under leasehold run';
    END IF;
    SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f WHERE f.name = leasehold_enter_late.name;
    IF highest > leasehold_enter_late.token THEN
        RETURN;
    END IF;
    had := highest;
    is_shared := coalesce(highest = leasehold_enter_late.token, false);
    is_open := CASE WHEN is_shared THEN pg_try_advisory_xact_lock_shared(gate) ELSE pg_try_advisory_xact_lock(gate) END;
    IF is_shared AND is_open AND NOT is_frozen THEN
        -- Once more, because the first look was in front of the gate.
        SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f WHERE f.name = leasehold_enter_late.name;
    ELSE
        PERFORM set_config('lock_timeout',
            coalesce(nullif(current_setting('leasehold.patience', true), ''), nullif(before, '0'), '5s'), true);
        BEGIN
            IF NOT is_open AND is_shared THEN
                PERFORM pg_advisory_xact_lock_shared(gate);
            ELSIF NOT is_open THEN
                PERFORM pg_advisory_xact_lock(gate);
            END IF;
            IF is_frozen AND NOT is_open THEN
                PERFORM @schema@.leasehold_outdated(leasehold_enter_late.name);
            ELSIF is_shared AND NOT is_frozen THEN
                SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
                    WHERE f.name = leasehold_enter_late.name;
            ELSIF is_shared THEN
                SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
                    WHERE f.name = leasehold_enter_late.name FOR SHARE;
            ELSE
                INSERT INTO @schema@.leasehold_fence AS f (name, token, holder, raised_at)
                    VALUES (leasehold_enter_late.name, leasehold_enter_late.token, leasehold_enter_late.holder, clock_timestamp())
                    ON CONFLICT (name) DO UPDATE
                        SET token = excluded.token, holder = excluded.holder, raised_at = excluded.raised_at
                        WHERE f.token < excluded.token
                    RETURNING f.token, f.xmin INTO highest, mark;
                IF FOUND THEN
                    -- So does the trigger, for changes by hand. But a trigger can be switched off, and those who know must notice a raise all the same.
                    PERFORM nextval(@raises@);
                END IF;
                IF mark IS NULL THEN
                    SELECT f.token, f.holder INTO highest, whose FROM @schema@.leasehold_fence f
                        WHERE f.name = leasehold_enter_late.name;
                ELSIF is_frozen AND had IS NOT NULL AND @schema@.leasehold_is_recent(mark) THEN
                    PERFORM @schema@.leasehold_outdated(leasehold_enter_late.name);
                ELSIF current_setting('synchronous_commit') = 'off' THEN
                    -- A raise that was acknowledged must not be forgotten by a crash.
                    PERFORM set_config('synchronous_commit', 'on', true);
                END IF;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM @schema@.leasehold_blocked(leasehold_enter_late.name);
        END;
        PERFORM set_config('lock_timeout', before, true);
    END IF;
    IF highest IS NULL OR highest < leasehold_enter_late.token THEN
        RAISE EXCEPTION USING
            ERRCODE = 'serialization_failure',
            MESSAGE = format('the row of the fence %s was lowered or deleted by hand meanwhile', leasehold_enter_late.name),
            HINT = 'try the whole transaction again';
    END IF;
    -- For the next entry of this session. All that is known was found where leasehold_raises stands now.
    IF highest = leasehold_enter_late.token AND NOT is_frozen AND pg_current_xact_id_if_assigned() IS NULL THEN
        raises := pg_sequence_last_value(@raises@)::text;
        known := current_setting('leasehold.known', true);
        IF raises IS DISTINCT FROM current_setting('leasehold.raises', true) OR coalesce(known, '') = '' OR length(known) > longest THEN
            known := E'\n';
        END IF;
        line := '@here@ ' || leasehold_enter_late.token::text || ' ' || leasehold_enter_late.name || E'\n';
        IF strpos(known, E'\n' || line) = 0 THEN
            PERFORM set_config('leasehold.known', known || line, false), set_config('leasehold.raises', raises, false);
        END IF;
    END IF;
END
$function$;

-- Ends an entry whose snapshot is older than what it would have to know.
CREATE OR REPLACE FUNCTION leasehold_outdated(name text) RETURNS void
LANGUAGE plpgsql AS $function$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = 'serialization_failure',
        MESSAGE = format('could not serialize access: transactions that may have entered the fence of %s ended after the snapshot of this one',
                         leasehold_outdated.name),
        HINT = 'try the whole transaction again. If that does not help, seal first: SELECT leasehold_seal(NAME, TOKEN) in a '
               'transaction of its own';
END
$function$;

-- Whether anybody has committed between the snapshot of this transaction and a moment, of which a number is known that was given to a (sub)transaction
-- then: it was in progress when the snapshot was taken, or has a number from after it and from before that one.
--
-- It is asked behind the gate, with a number that was given there. Whoever had entered before, and has written anything, had a number before that, and has
-- given up the gate, which comes after its commit; if that is not in the snapshot it is found here. Those who share the
-- gate leave no mark that would tell them from others, so this may be said of transactions that have nothing to do with the fence.
CREATE OR REPLACE FUNCTION leasehold_is_recent(mark xid) RETURNS boolean
LANGUAGE plpgsql AS $function$
DECLARE
    -- More than a snapshot of some minutes is behind, on a busy server; a longer list is not worth its memory.
    longest CONSTANT bigint := 1000000;
    next    bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
    -- Marks have 32 bits, which go round.
    newer   bigint := (mark::text::bigint - next) & 4294967295;
BEGIN
    RETURN newer > longest
        OR EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()) running WHERE pg_xact_status(running) = 'committed')
        OR EXISTS (SELECT FROM generate_series(next, next + newer - 1) began WHERE pg_xact_status(began::text::xid8) = 'committed');
END
$function$;

-- The entry as a procedure. A message that is text is parsed and planned each time, and for CALL that is less work than for SELECT. With
-- `is_begun`, leasehold_still knows this transaction again.
CREATE OR REPLACE PROCEDURE leasehold_entry(name text, token bigint, holder text DEFAULT NULL, is_begun boolean DEFAULT false)
LANGUAGE plpgsql AS $procedure$
#variable_conflict use_variable
DECLARE
    done text;
BEGIN
    IF @again@ IS NOT TRUE THEN
        done := @schema@.leasehold_enter(name, token, holder);
    END IF;
    IF is_begun THEN
        done := set_config('leasehold.begun', pg_current_xact_id()::text, true);
    END IF;
END
$procedure$;

-- Whoever changes or removes a row must have its gate, and moves leasehold_raises on behind it: those who enter rely on both. leasehold_enter_late has
-- the gate already; this is for changes by hand, of a replica, and of functions that an older migration made. The row is locked before
-- this is asked, so it may meet somebody above READ COMMITTED who has the gate and waits for the row: a deadlock, which PostgreSQL
-- ends. TRUNCATE does not need the gates: whoever makes a row anew takes its gate.
CREATE OR REPLACE FUNCTION leasehold_by_hand() RETURNS trigger
LANGUAGE plpgsql AS $function$
BEGIN
    IF TG_OP <> 'TRUNCATE' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(OLD.name, @here@));
    END IF;
    PERFORM nextval(@raises@);
    IF TG_OP = 'UPDATE' THEN
        RETURN NEW;
    ELSIF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NULL;
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

-- The same as a procedure, for the same reason as leasehold_entry.
CREATE OR REPLACE PROCEDURE leasehold_exit(name text)
LANGUAGE plpgsql AS $procedure$
DECLARE
    done text;
BEGIN
    done := @schema@.leasehold_still(leasehold_exit.name);
END
$procedure$;

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
$create$, '@again@', again), '@known@', known), '@raises@', quote_literal(quote_ident(current_schema()) || '.leasehold_raises')), '@here@', hashtextextended(current_schema(), 5501230733)::text),
    '@quoted@', quote_literal(quote_ident(current_schema()))), '@schema@', quote_ident(current_schema()));

-- Once, and again if somebody has switched them off: making them waits for open raises, and keeps others waiting meanwhile. ALWAYS, because a replica that applies changes fires no others.
IF NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relname = 'leasehold_fence' AND c.relnamespace = quote_ident(current_schema())::regnamespace AND t.tgname = 'leasehold_by_hand' AND t.tgenabled = 'A')
THEN
    CREATE OR REPLACE TRIGGER leasehold_by_hand BEFORE UPDATE OF name, token OR DELETE ON leasehold_fence
        FOR EACH ROW EXECUTE FUNCTION leasehold_by_hand();
    CREATE OR REPLACE TRIGGER leasehold_by_hand_truncate BEFORE TRUNCATE ON leasehold_fence
        FOR EACH STATEMENT EXECUTE FUNCTION leasehold_by_hand();
    ALTER TABLE leasehold_fence ENABLE ALWAYS TRIGGER leasehold_by_hand;
    ALTER TABLE leasehold_fence ENABLE ALWAYS TRIGGER leasehold_by_hand_truncate;
END IF;
END
$migration$;

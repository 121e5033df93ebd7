-- Drop what is in the schema and belongs to no extension. The transaction stays open for what takes its place.
SET lock_timeout = '10s';
SET client_min_messages = warning;
BEGIN;
DO $$
DECLARE
  ours record;
BEGIN
  FOR ours IN
    SELECT format('public.%I', c.relname) AS name,
           CASE c.relkind
             WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE'
           END AS kind
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace
      AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
      AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
      )
    ORDER BY c.relkind = 'S'  -- those of columns go along with their tables
  LOOP
    IF to_regclass(ours.name) IS NOT NULL THEN  -- not gone along with another
      EXECUTE format('DROP %s %s CASCADE', ours.kind, ours.name);
    END IF;
  END LOOP;
  FOR ours IN
    SELECT p.oid::regprocedure AS name
    FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace
      AND NOT EXISTS (
        SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
      )
  LOOP
    EXECUTE format('DROP ROUTINE %s CASCADE', ours.name);
  END LOOP;
END $$;

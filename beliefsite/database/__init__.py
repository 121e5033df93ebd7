"""Django's PostgreSQL backend: which servers will do, and a health check that costs no round trip."""

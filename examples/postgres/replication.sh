#!/bin/bash
# Run once by the image, when postgres-0 makes the database: standbys may log in and copy it.
set -euo pipefail
psql --username postgres --command "CREATE ROLE replicator WITH REPLICATION LOGIN PASSWORD '$POSTGRES_PASSWORD'"
echo 'host replication replicator all scram-sha-256' >>"$PGDATA/pg_hba.conf"

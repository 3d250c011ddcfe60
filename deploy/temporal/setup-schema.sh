#!/bin/sh
# Creates Temporal's two databases in Postgres, or brings their schema up to this release. Safe to run again.
set -eu

schema() {
  tool="temporal-sql-tool --plugin postgres12 --ep $POSTGRES_SEEDS --port $DB_PORT --user $POSTGRES_USER --db $1"
  $tool create
  $tool setup-schema --version 0.0
  $tool update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

schema temporal temporal
schema temporal_visibility visibility

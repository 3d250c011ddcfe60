#!/bin/sh
# Creates the namespace and the search attributes that the platform uses. Safe to run again.
set -eu

RETENTION=${TEMPORAL_RETENTION:-7d}

# retry WHAT COMMAND…: until it succeeds, for at most three minutes.
retry() {
  what=$1 tries=90
  shift
  until "$@"; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
      echo "gave up waiting for $what" >&2
      exit 1
    fi
    echo "waiting for $what"
    sleep 2
  done
}

retry "Temporal at $TEMPORAL_ADDRESS" temporal operator cluster health

if ! temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
fi

# A new namespace is known to every part of the server only after its caches were refreshed.
for name in FleetTenant FleetSession FleetAgentType FleetState FleetError; do
  retry "the namespace $TEMPORAL_NAMESPACE" \
    temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" --name "$name" --type Keyword
done

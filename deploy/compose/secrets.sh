#!/bin/sh
# Makes the secrets of docker-compose.yml at the first start: each that .env (beside that file) does not have yet. Safe to run again.
# Back .env up with the database: FLEET_SECRET_KEY protects what is encrypted in it.
set -eu

file=${1:-$(dirname "$0")/../../.env}
umask 077
touch "$file"
chmod 600 "$file"
# A last line without its end would take in what is added.
[ -z "$(tail -c 1 "$file")" ] || echo >>"$file"

# add NAME VALUE
add() {
  if grep -q "^$1=." "$file"; then return; fi
  printf '%s=%s\n' "$1" "$2" >>"$file"
  echo "made $1 in $file"
}

random_hex() {
  od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

add FLEET_SECRET_KEY "$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
add POSTGRES_PASSWORD "$(random_hex)"
add VALKEY_PASSWORD "$(random_hex)"

#!/bin/sh
# Writes gateway.env and redis.env (both ignored by git) with random values. Keeps files that exist.
set -eu
cd "$(dirname "$0")"
umask 077
if [ -e gateway.env ] || [ -e redis.env ]; then
  echo "gateway.env or redis.env exists; remove both to make new secrets" >&2
  exit 0
fi
secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
token=$(secret)
password=$(secret)
grep -v '^#' gateway.env.example | sed "s/^ADMIN_TOKEN=.*/ADMIN_TOKEN=$token/; s/replace-me/$password/" >gateway.env
grep -v '^#' redis.env.example | sed "s/replace-me/$password/" >redis.env

#!/bin/sh
# Writes random secrets for the development overlay and for compose, as the files that the containers read. Git ignores
# them. Keeps what exists; remove the directories `gateway` and `redis` to make new ones.
set -eu
cd "$(dirname "$0")"
if [ -e gateway ] || [ -e redis ]; then
  echo "gateway or redis exists here; remove both to make new secrets" >&2
  exit 0
fi
secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
password=$(secret)
# Others on this machine are kept out by this directory; in a container, accounts that are not the owner's read the files.
chmod 700 .
mkdir -m 755 gateway redis
printf '%s\n' "$(secret)" >gateway/ADMIN_TOKEN
printf 'redis://:%s@redis:6379/0\n' "$password" >gateway/REDIS_URL
# A line of redis.conf, with the password of REDIS_URL.
printf 'requirepass %s\n' "$password" >redis/REDIS_AUTH
chmod 444 gateway/* redis/*

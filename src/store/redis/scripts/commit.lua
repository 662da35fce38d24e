-- Makes the commits of one turn, each with a fate of its own: one that fails, such as that of a key
-- of another type, must not fail the others. Decides nothing: the tables are in TypeScript.
-- KEYS: events, then for each commit its documents and the lists of its entries.
-- ARGV: the clock that the callers assume, how far it may be off, the length of the ring of events;
-- then for each commit: how many documents, lists, entries and events, and the clock from which it
-- holds; for each document what is done (s set, d delete, e end, g nothing) with the version that is
-- expected and its end, and its new version with the value; for each list how many entries, their
-- score ('' removes them), and their members; each event.
local VERSION_LENGTH = 16
-- Entries of one command: a call of Lua has no room for more than some thousand arguments.
local MOST = 1000
-- In place of a version: no document, and anything.
local NONE, ANY = string.rep('-', VERSION_LENGTH), string.rep('*', VERSION_LENGTH)
local time = redis.call('TIME')
local clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- The key that a commit has touched last, which an error names.
local touched

local function expected_in(word)
  return string.sub(word, 2, VERSION_LENGTH + 1)
end

local function commit(key, at, documents, lists, events, not_before)
  if clock < not_before then return 'early' end
  for i = 0, documents - 1 do
    local expected = expected_in(ARGV[at + 2 * i])
    touched = KEYS[key + i]
    if expected ~= ANY then
      local version = redis.call('GETRANGE', touched, 0, VERSION_LENGTH - 1)
      if version ~= expected and not (version == '' and expected == NONE) then
        local found = {}
        for j = 0, documents - 1 do
          touched = KEYS[key + j]
          found[j + 1] = expected_in(ARGV[at + 2 * j]) ~= ANY and redis.call('GET', touched)
        end
        return found
      end
    end
  end
  -- Lists and events before documents, of which no write fails: a list of another type fails all.
  local list, word = key + documents, at + 2 * documents
  for _ = 1, lists do
    local entries, score = string.match(ARGV[word], '^(%d+) (.*)$')
    touched = KEYS[list]
    local last = word + tonumber(entries)
    for first = word + 1, last, MOST do
      local members = { unpack(ARGV, first, math.min(first + MOST - 1, last)) }
      if score == '' then
        redis.call('ZREM', touched, unpack(members))
      else
        local scored = {}
        for i, member in ipairs(members) do
          scored[2 * i - 1], scored[2 * i] = score, member
        end
        redis.call('ZADD', touched, unpack(scored))
      end
    end
    list, word = list + 1, last + 1
  end
  touched = KEYS[1]
  for i = 0, events - 1 do
    redis.call('XADD', touched, 'MAXLEN', '~', ARGV[3], '*', 'e', ARGV[word + i])
  end
  for _ = 1, documents do
    local what, ends = string.sub(ARGV[at], 1, 1), string.sub(ARGV[at], VERSION_LENGTH + 2)
    touched = KEYS[key]
    if what == 's' and ends == '' then
      redis.call('SET', touched, ARGV[at + 1])
    elseif what == 's' then
      redis.call('SET', touched, ARGV[at + 1], 'PXAT', ends)
    elseif what == 'd' then
      redis.call('DEL', touched)
    elseif what == 'e' then
      redis.call('PEXPIREAT', touched, ends)
    end
    key, at = key + 1, at + 2
  end
  return 'done'
end

local replies = { string.format('%.0f', clock) }
local is_off = math.abs(clock - tonumber(ARGV[1])) > tonumber(ARGV[2])
local key, at = 2, 4
while at <= #ARGV do
  local documents, lists, entries, events, not_before = string.match(ARGV[at], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  documents, lists, entries, events = tonumber(documents), tonumber(lists), tonumber(entries), tonumber(events)
  local reply = 'early'
  if not is_off then
    local made
    made, reply = pcall(commit, key, at + 1, documents, lists, events, tonumber(not_before))
    if not made then
      local cause = type(reply) == 'table' and reply.err or tostring(reply)
      -- The client leaves such a server only for an error of the whole script.
      if string.sub(cause, 1, 8) == 'READONLY' then return redis.error_reply(cause) end
      reply = touched .. ': ' .. cause
    end
  end
  replies[#replies + 1] = reply
  key, at = key + documents + lists, at + 1 + 2 * documents + lists + entries + events
end
return replies

-- Shared by all scripts, put before each of them. ARGV[1] is always one JSON document, the plan. What
-- a script only stores comes behind it, as it is.
-- The transitions that are allowed stand in the table in TypeScript and arrive in the plan as
-- lists.
local plan = cjson.decode(ARGV[1])

-- The store's clock, milliseconds: the clocks of the pods may differ.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- A number as text without an exponent.
local function whole(number)
  return string.format('%.0f', number)
end

local function listed(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end

-- Some fields of a hash as a table, or nil when it has none of them.
local function read_fields(key, names)
  local values = redis.call('HMGET', key, unpack(names))
  local fields, found = {}, false
  for at, name in ipairs(names) do
    if values[at] then
      fields[name] = values[at]
      found = true
    end
  end
  return found and fields or nil
end

-- A hash as a table, or nil when there is none.
local function read_hash(key)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return nil end
  local hash = {}
  for i = 1, #flat, 2 do hash[flat[i]] = flat[i + 1] end
  return hash
end

local function save(key, fields)
  local flat = {}
  for name, value in pairs(fields) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  redis.call('HSET', key, unpack(flat))
end

-- { kind, clock, record }, the record as field, value, field, value.
local function answer(kind, now, key)
  return { kind, whole(now), redis.call('HGETALL', key) }
end

-- A lease of 0 is none: the record is due for the reconciler after the pause.
local function lease(fields, now, lease_ms, again_ms)
  fields.leaseUntil = '0'
  if lease_ms > 0 then fields.leaseUntil = whole(now + lease_ms) end
  fields.dueAt = whole(now + lease_ms + again_ms)
end

-- The score of the work list is always the `dueAt` of the record.
local function list_work(open, record_id, due_at)
  if due_at == '0' then
    redis.call('ZREM', open, record_id)
  else
    redis.call('ZADD', open, due_at, record_id)
  end
end

-- Renews the expiry of a record.
local function keep_alive(key, now, valid_before, retention_ms)
  local until_ms = math.max(tonumber(valid_before) * 1000, now) + retention_ms
  redis.call('PEXPIRE', key, whole(until_ms - now))
end

-- Appends the events among the arguments from `first` to `last`.
local function append_events(key, first, last)
  for at = first, last do
    redis.call('XADD', key, 'MAXLEN', '~', plan.eventsMaxLength, '*', 'e', ARGV[at])
  end
end

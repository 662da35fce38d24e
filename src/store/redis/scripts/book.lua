-- The book of receipts, put before the scripts that write to it. Six keys from `first` on: the hash
-- of receipts, the sorted sets of the lists `done`, `owed` and `uncertain` and of names, and the
-- trimmed range. All scores are 0, so the order is that of the ids, which is time. The lists of a
-- receipt follow from its JSON, here and in `listsOf` of receipt.ts.
local NAME_LENGTH = 22

-- The beginning of an entry among the names: a digest, because a caller chose the value.
local function name_of(named)
  return string.sub(redis.sha1hex(named), 1, NAME_LENGTH)
end

-- A receipt as a table, or nil for a damaged one, which counts as owed.
local function read_receipt(json)
  if not json then return nil end
  local readable, receipt = pcall(cjson.decode, json)
  if readable and type(receipt) == 'table' then return receipt end
  return nil
end

-- The payment that a receipt is of, or nil.
local function payment_of(receipt)
  if receipt == nil or type(receipt.payment) ~= 'table' or type(receipt.payment.replayKey) ~= 'string' then return nil end
  return receipt.payment.replayKey
end

-- What a receipt is found by, as `kind:value`.
local function names_of(receipt)
  local names = {}
  if receipt == nil then return names end
  local function add(kind, value)
    if type(value) == 'string' then names[kind .. ':' .. value] = true end
  end
  add('request', receipt.requestId)
  add('payment', payment_of(receipt))
  if type(receipt.metadata) == 'table' then
    add('request', receipt.metadata.resumedFrom)
    add('call', receipt.metadata.callId)
  end
  return names
end

local function is_done(receipt)
  return receipt ~= nil and receipt.delivered == true
end

local function is_uncertain(receipt)
  if receipt == nil or receipt.delivered == true then return false end
  local unknown = type(receipt.payment) == 'table' and receipt.payment.status == 'unknown'
  return unknown or (type(receipt.metadata) == 'table' and receipt.metadata.deliveryUncertain == true)
end

local function book_at(first)
  local receipts, done, owed, uncertain, names, trimmed = unpack(KEYS, first, first + 5)
  local book = {}

  -- Names that `receipt` has and `other` has not: to `names`, or from them.
  local function name(command, receipt, other, id)
    local known = names_of(other)
    local members = {}
    for named in pairs(names_of(receipt)) do
      if not known[named] then
        if command == 'ZADD' then members[#members + 1] = 0 end
        members[#members + 1] = name_of(named) .. id
      end
    end
    if #members > 0 then redis.call(command, names, unpack(members)) end
  end

  local function list(key, id, belongs, belonged)
    if belongs and not belonged then
      redis.call('ZADD', key, 0, id)
    elseif belonged and not belongs then
      redis.call('ZREM', key, id)
    end
  end

  -- Puts a receipt on its lists and takes it from the others. `before`: its earlier JSON, which is
  -- listed; false for none.
  local function enter(id, json, before)
    local receipt, earlier = read_receipt(json), read_receipt(before)
    list(done, id, is_done(receipt), is_done(earlier))
    list(owed, id, not is_done(receipt), before and not is_done(earlier))
    list(uncertain, id, is_uncertain(receipt), is_uncertain(earlier))
    name('ZADD', receipt, earlier, id)
    name('ZREM', earlier, receipt, id)
  end

  function book.drop(id)
    name('ZREM', read_receipt(redis.call('HGET', receipts, id)), nil, id)
    redis.call('HDEL', receipts, id)
    for _, key in ipairs({ done, owed, uncertain }) do redis.call('ZREM', key, id) end
  end

  -- `ids`: oldest first.
  local function drop_all(ids)
    for _, id in ipairs(ids) do book.drop(id) end
    if #ids == 0 then return 0 end
    local range = redis.call('HMGET', trimmed, 'from', 'to')
    if not range[1] or ids[1] < range[1] then redis.call('HSET', trimmed, 'from', ids[1]) end
    if not range[2] or ids[#ids] > range[2] then redis.call('HSET', trimmed, 'to', ids[#ids]) end
    return #ids
  end

  -- The ids of the receipts of the same payment.
  local function same_payment(receipt)
    local payment = payment_of(receipt)
    if payment == nil then return {} end
    local beginning = name_of('payment:' .. payment)
    local found = redis.call('ZRANGEBYLEX', names, '[' .. beginning, '[' .. beginning .. '~')
    for at, entry in ipairs(found) do found[at] = string.sub(entry, NAME_LENGTH + 1) end
    return found
  end

  -- Drops the oldest delivered receipts over `length`, at most `most`. Returns how many.
  function book.trim(length, most)
    local over = math.min(redis.call('ZCARD', done) - length, most)
    if over <= 0 then return 0 end
    return drop_all(redis.call('ZRANGE', done, 0, over - 1))
  end

  -- Drops delivered receipts whose ids are before `bound`, at most `most`. Returns how many.
  function book.age(bound, most)
    return drop_all(redis.call('ZRANGEBYLEX', done, '-', '(' .. bound, 'LIMIT', 0, most))
  end

  -- Writes a receipt. It replaces the one of the same id and any other of the same payment: one
  -- that was rebuilt from the chain, under another id, gives way to the gateway's own.
  function book.put(receipt)
    local before = redis.call('HGET', receipts, receipt.id)
    if not before then
      for _, id in ipairs(same_payment(read_receipt(receipt.json))) do book.drop(id) end
    end
    redis.call('HSET', receipts, receipt.id, receipt.json)
    enter(receipt.id, receipt.json, before)
  end

  -- Whether the book has this receipt, or another one of its payment.
  function book.has(receipt)
    return redis.call('HGET', receipts, receipt.id) ~= false or #same_payment(read_receipt(receipt.json)) > 0
  end
  return book
end

-- The register of mandates, put before the scripts that use it; the twin of register-table.ts. Four
-- keys from `first` on: what was used once, by its end; the state of each open mandate; their ends;
-- and the epoch. Its functions are made by `register_at`, because most payments have no mandate.
local function register_at(first)
  local once, open_states, open_ends, epoch = KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3]

  local function millis(seconds)
    return math.floor(seconds * 1000)
  end

  -- A time of the clock that the mandate was checked with, on the store's clock.
  local function store_time(until_s, at, now)
    return now + millis(until_s - at)
  end

  -- Numbers are stored as text: the encoder and `tostring` print large ones with an exponent.
  local OPEN_STATE =
    '{"spent":"%.0f","pending":"%.0f","uses":"%.0f","puses":"%.0f","last":"%.0f","plast":"%.0f","ends":"%.0f"}'

  local function write_open(id, state)
    local json = string.format(
      OPEN_STATE, state.spent, state.pending, state.uses, state.puses, state.last, state.plast, state.ends
    )
    redis.call('HSET', open_states, id, json)
    redis.call('ZADD', open_ends, whole(state.ends), id)
  end

  -- A state that ended counts no more, whether it was swept or not.
  local function read_open(id, now)
    local found = redis.call('HGET', open_states, id)
    if found then
      local state = cjson.decode(found)
      for name, value in pairs(state) do state[name] = tonumber(value) end
      if state.ends > now then return state end
    end
    return { spent = 0, pending = 0, uses = 0, puses = 0, last = 0, plast = 0, ends = 0 }
  end

  local function begin(born, open_from)
    redis.call('HSET', epoch, 'born', whole(born), 'openFrom', whole(open_from))
    return { born = born, open_from = open_from }
  end

  local function read_epoch()
    local found = read_hash(epoch) or {}
    local born, open_from = tonumber(found.born or ''), tonumber(found.openFrom or '')
    return born and open_from and { born = born, open_from = open_from }
  end

  -- Without an age a claim or a use counts as older than every register.
  local function is_older(thing, since, now)
    return since > 0 and (thing.age == nil or now - math.ceil(thing.age * 1000) < since)
  end

  local function units_of(use)
    return use.recurrence and tonumber(use.recurrence.units) or 0
  end

  local function refusal_of(state, recurrence)
    local uses = state.uses + state.puses
    if recurrence == nil then
      if uses > 0 then return 'open_mandate_spent' end
      return nil
    end
    if recurrence.maxOccurrences and uses >= recurrence.maxOccurrences then return 'recurrence_exceeded' end
    local start = recurrence.periodStart
    if start and uses > 0 and math.max(state.last, state.plast) >= millis(start) then return 'recurrence_too_soon' end
    -- `units` and `spent + pending` are at most 2^53 - 1 each: a sum that is rounded is over any
    -- budget.
    local wanted = state.spent + state.pending + tonumber(recurrence.units)
    if wanted > tonumber(recurrence.budgetUnits) then return 'budget_exceeded' end
    return nil
  end

  -- Members of a sorted set or a hash do not expire: later writes delete those that ended, and the
  -- keys expire with the last end.
  local function sweep(index, owner, now)
    local over = redis.call('ZRANGE', index, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, plan.sweptAtOnce)
    if #over == 0 then return end
    redis.call('ZREM', index, unpack(over))
    if owner then redis.call('HDEL', owner, unpack(over)) end
  end

  local function expire_with_last(index, owner, now)
    local latest = redis.call('ZRANGE', index, -1, -1, 'WITHSCORES')[2]
    if not latest then return end
    -- 0 would delete the keys at once.
    local left = whole(math.max(1, tonumber(latest) - now))
    redis.call('PEXPIRE', index, left)
    if owner then redis.call('PEXPIRE', owner, left) end
  end

  -- Checks everything, then writes everything. Returns nil, or the refusal, and then no use is
  -- written.
  local function reserve_uses(claim, now)
    local since = read_epoch()
    if not since then
      -- Opening the store begins an epoch, so the store was emptied since, maybe before this claim.
      begin(now, now)
      return 'replayed'
    end
    if is_older(claim, since.born, now) then return 'replayed' end
    for _, use in ipairs(claim.open) do
      if is_older(use, since.open_from, now) then return 'open_mandate_spent' end
    end
    for _, id in ipairs(claim.once) do
      local ends = redis.call('ZSCORE', once, id)
      if ends and tonumber(ends) > now then return 'replayed' end
    end
    local states = {}
    for i, use in ipairs(claim.open) do
      states[i] = read_open(use.id, now)
      local refusal = refusal_of(states[i], use.recurrence)
      if refusal then return refusal end
    end
    sweep(once, nil, now)
    sweep(open_ends, open_states, now)
    for _, id in ipairs(claim.once) do
      redis.call('ZADD', once, whole(store_time(claim.onceUntil, claim.at, now)), id)
    end
    for i, use in ipairs(claim.open) do
      local state = states[i]
      state.pending = state.pending + units_of(use)
      state.puses = state.puses + 1
      state.plast = math.max(state.plast, millis(claim.at))
      state.ends = math.max(state.ends, store_time(use['until'], claim.at, now))
      write_open(use.id, state)
    end
    expire_with_last(once, nil, now)
    expire_with_last(open_ends, open_states, now)
    return nil
  end

  -- Ends reserved uses. The caller makes sure that they were not ended before.
  local function finish_uses(claim, how, now)
    if how == 'release' then redis.call('ZREM', once, unpack(claim.once)) end
    for _, use in ipairs(claim.open) do
      local state = read_open(use.id, now)
      if state.puses > 0 then
        local at = millis(claim.at)
        state.pending = math.max(0, state.pending - units_of(use))
        state.puses = state.puses - 1
        -- Of several pending uses only the time of the latest is known.
        if state.puses == 0 or state.plast == at then state.plast = 0 end
        if how == 'commit' then
          state.spent = state.spent + units_of(use)
          state.uses = state.uses + 1
          state.last = math.max(state.last, at)
        end
        if state.uses + state.puses == 0 then
          redis.call('HDEL', open_states, use.id)
          redis.call('ZREM', open_ends, use.id)
        else
          write_open(use.id, state)
        end
      end
    end
  end

  -- The claim of a call as text, until it ends, or nil.
  local function held_claim(held, ends, name, now)
    local over = redis.call('ZSCORE', ends, name)
    if not over or tonumber(over) <= now then return nil end
    return redis.call('HGET', held, name)
  end

  -- The epoch, begun where there is none. `known`: the birth that this gateway has seen before, or
  -- nil. `first`: what an empty register begins with, or nil.
  local function keep_epoch(known, first, now)
    local found = read_epoch()
    if not found then
      if known then
        found = begin(now, now)
      else
        -- A second ago: the clocks of gateways differ a little, and checkouts of other signers have
        -- their time in whole seconds.
        found = begin(first and first.born or now - 1000, first and first.openFrom or 0)
      end
    elseif known and found.born > tonumber(known) and found.open_from == 0 then
      -- A gateway that started after the loss began it, as at a first start.
      found = begin(now, now)
    end
    return found
  end

  return {
    reserve = reserve_uses,
    keep_epoch = keep_epoch,
    finish = finish_uses,
    sweep = sweep,
    expire_with_last = expire_with_last,
    store_time = store_time,
    held_claim = held_claim,
  }
end

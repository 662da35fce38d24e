-- One page of the book, newest first: the ids between two bounds, each after `cut` characters of a
-- name, and their JSON. Returns { ids, JSON }.
-- KEYS: receipts, and the sorted sets to read.
local seen, ids = {}, {}
for at = 2, #KEYS do
  for _, entry in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[at], plan.max, plan.min, 'LIMIT', 0, plan.count)) do
    local id = string.sub(entry, plan.cut + 1)
    if not seen[id] then
      seen[id] = true
      ids[#ids + 1] = id
    end
  end
end
if #KEYS > 2 then table.sort(ids, function(a, b) return a > b end) end
local page = {}
for at = 1, math.min(#ids, plan.count) do page[at] = ids[at] end
local found = {}
-- `unpack` takes some thousand values at once.
for from = 1, #page, 1000 do
  local to = math.min(from + 999, #page)
  for _, json in ipairs(redis.call('HMGET', KEYS[1], unpack(page, from, to))) do found[#found + 1] = json end
end
return { page, found }

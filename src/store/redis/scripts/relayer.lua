-- Leases one relayer account to an owner, or gives back what it has. Answers with the place of the
-- account among the keys, or 0. KEYS: the accounts, in the order in which they are taken.
local free = 0
for place, key in ipairs(KEYS) do
  local holder = redis.call('GET', key)
  if holder == plan.owner then
    if plan.command == 'release' then
      redis.call('DEL', key)
    else
      redis.call('SET', key, plan.owner, 'PX', plan.forMs)
      return place
    end
  elseif not holder and free == 0 then
    free = place
  end
end
if plan.command == 'release' or free == 0 then return 0 end
redis.call('SET', KEYS[free], plan.owner, 'PX', plan.forMs)
return free

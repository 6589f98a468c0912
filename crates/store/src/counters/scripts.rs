//! The Lua scripts for the server. Redis 6 and Valkey replicate effects, not scripts, so
//! a script may read the clock.

/// Takes from a plan. Keys: the org's hash. Arguments: offset of its windows; requests allowed;
/// invocations allowed, or -1 if none is taken; the window that the node knows, and what was used
/// in it. Gives 0, or 1 or 2 if there are no requests or no invocations left; the window; what is
/// used of both; the time.
///
/// A window that is one ahead of the clock stands: the clock of a replica that took over may lag.
pub(super) const CHARGE: &str = "
local time = redis.call('TIME')
local window = math.floor((tonumber(time[1]) - tonumber(ARGV[1])) / 60)
local kept = redis.call('HMGET', KEYS[1], 'w', 'r', 'i')
local stored, requests, invocations = tonumber(kept[1]), 0, 0
if stored == window + 1 then window = stored end
if stored == window then
    requests, invocations = tonumber(kept[2]) or 0, tonumber(kept[3]) or 0
end
if tonumber(ARGV[4]) == window then
    requests = math.max(requests, tonumber(ARGV[5]))
    invocations = math.max(invocations, tonumber(ARGV[6]))
end
local verdict = 0
if requests >= tonumber(ARGV[2]) then
    verdict = 1
else
    requests = requests + 1
    local allowed = tonumber(ARGV[3])
    if allowed >= 0 then
        if invocations >= allowed then verdict = 2 else invocations = invocations + 1 end
    end
    redis.call('HSET', KEYS[1], 'w', window, 'r', requests, 'i', invocations)
    redis.call('EXPIRE', KEYS[1], 180)
end
return { verdict, window, requests, invocations, tonumber(time[1]), tonumber(time[2]) }
";

/// Takes one from each rate or from none (the generic cell rate algorithm, as `Rate::take` in
/// core). Keys: one for each rate, holding the moment at which all that was taken is made good.
/// Arguments: interval and slack of each. Gives 0 and 0, or the place of the first rate that is
/// used up and how long to wait, in microseconds.
pub(super) const RATES: &str = "
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local spent = {}
for place, key in ipairs(KEYS) do
    local interval, slack = tonumber(ARGV[place * 2 - 1]), tonumber(ARGV[place * 2])
    local before = spent[key] or tonumber(redis.call('GET', key) or 0)
    local wait = before - slack - now
    if wait > 0 then return { place, wait } end
    spent[key] = math.max(before, now) + interval
end
for key, moment in pairs(spent) do
    local life = math.ceil((moment - now) / 1000) + 1000
    redis.call('SET', key, string.format('%.0f', moment), 'PX', string.format('%.0f', life))
end
return { 0, 0 }
";

/// Gives one back to each rate. Keys: one for each. Arguments: the interval of each.
pub(super) const GIVE_BACK: &str = "
for place, key in ipairs(KEYS) do
    local before = redis.call('GET', key)
    if before then
        local moment = string.format('%.0f', tonumber(before) - tonumber(ARGV[place]))
        redis.call('SET', key, moment, 'KEEPTTL')
    end
end
return 0
";

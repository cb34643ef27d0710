-- KEYS: the fence, then every key of the commands. ARGV: token, holder, number of commands, the words of each, all words.
-- Tokens are text: a number of Lua is a double, and above 2^53 two tokens would be one. Without leading zeros the longer one is
-- the greater one; of equal length their text decides.
local token, highest = ARGV[1], redis.call('HGET', KEYS[1], 'token')
if highest ~= token then
  -- For callers that know only this script: whatever else were kept here would shut out every token below it, or none.
  if not token:find('^[1-9]%d*$') or #token > 19 or (#token == 19 and token > '9223372036854775807') then
    return redis.error_reply('BADTOKEN ' .. token .. ' is no number from 1 to 9223372036854775807 in plain digits; nothing was written')
  end
  if highest and (#token < #highest or (#token == #highest and token < highest)) then
    -- Kept for people; it must not change the answer, so it may fail (on a replica, or without memory).
    local nth = redis.pcall('HINCRBY', KEYS[1], 'refused', 1)
    if type(nth) == 'number' then
      local now = redis.call('TIME')
      local line = string.format('%d %s %s %s.%06d %s', nth, token, highest, now[1], now[2], ARGV[2])
      redis.pcall('HSET', KEYS[1], 'refused:' .. nth % 16, line)
    end
    return redis.error_reply('FENCED ' .. highest)
  end
  redis.call('HSET', KEYS[1], 'token', token, 'holder', ARGV[2])
end
local count = tonumber(ARGV[3])
if count == 1 then
  return redis.pcall(unpack(ARGV, 5))
end
local replies, word = {}, 4 + count
for nth = 1, count do
  local last = word + ARGV[3 + nth] - 1
  local reply = redis.pcall(unpack(ARGV, word, last))
  if type(reply) == 'table' and reply.err then
    -- Nothing rolls back the commands before this one. Whoever asked has to know that they stand.
    if nth == 1 then return reply end
    return redis.error_reply('HALFWAY ' .. nth .. ' ' .. reply.err)
  end
  replies[nth], word = reply, last + 1
end
return replies

-- Nothing is written unless this user may do all that the script does.
do
  local barred = forbidden(COMMANDS)
  if barred then return redis.error_reply('NOPERM ' .. barred) end
end

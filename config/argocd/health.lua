-- The health of a RollSet, from its conditions alone.
local health = {status = "Progressing", message = "waiting for the manager"}
if obj.status == nil or obj.status.conditions == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return health
end

local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end

for _, name in ipairs({"Stalled", "ReplicaFailure"}) do
  local trouble = conditions[name]
  if trouble ~= nil and trouble.status == "True" then
    return {status = "Degraded", message = trouble.reason .. ": " .. trouble.message}
  end
end

local progressing = conditions.Progressing
if progressing ~= nil then
  health.message = progressing.message
  if progressing.reason == "Paused" or progressing.reason == "AwaitingPromotion" then
    health.status = "Suspended"
    return health
  end
end
if conditions.Ready ~= nil and conditions.Ready.status == "True" then
  health.status = "Healthy"
end
return health

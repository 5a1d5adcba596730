-- For the kinds of Kueue that say how they are in a condition Active.
local health = {status = "Progressing", message = "waiting for Kueue to look at it"}
local conditions = (obj.status or {}).conditions or {}
for _, condition in ipairs(conditions) do
  local seen = condition.observedGeneration
  local is_current = seen == nil or obj.metadata.generation == nil or seen >= obj.metadata.generation
  if condition.type == "Active" and is_current then
    health.message = (condition.reason or "") .. ": " .. (condition.message or "")
    if condition.reason == "SomeActiveClusters" then
      health.status = "Degraded"
    elseif condition.status == "True" then
      health.status = "Healthy"
    elseif condition.reason == "Stopped" then
      health.status = "Suspended"
    elseif condition.reason == "Terminating" or condition.reason == "NotFound" then
      health.status = "Progressing"
    elseif condition.status == "False" then
      health.status = "Degraded"
    end
  end
end
return health

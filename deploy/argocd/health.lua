-- For the kinds of Kueue that say how they are in a condition Active.
local health = {status = "Progressing", message = "waiting for Kueue to look at it"}
-- Kueue writes the conditions of its other kinds again only when they say something new.
local is_queue = obj.kind == "ClusterQueue" or obj.kind == "LocalQueue"
-- A sync ends on Healthy or Degraded only, so a held queue, and what waits for it, must not be Suspended.
local is_held = {Stopped = true, ClusterQueueIsInactive = true}
local conditions = (obj.status or {}).conditions or {}
for _, condition in ipairs(conditions) do
  local seen = condition.observedGeneration
  local is_current = not is_queue or seen == nil or obj.metadata.generation == nil or seen >= obj.metadata.generation
  if condition.type == "Active" and is_current then
    health.message = (condition.reason or "") .. ": " .. (condition.message or "")
    if condition.reason == "SomeActiveClusters" then
      health.status = "Degraded"
    elseif condition.status == "True" or (is_queue and is_held[condition.reason or ""]) then
      health.status = "Healthy"
    elseif condition.reason == "Terminating" or condition.reason == "NotFound" then
      health.status = "Progressing"
    elseif condition.status == "False" then
      health.status = "Degraded"
    end
  end
end
return health

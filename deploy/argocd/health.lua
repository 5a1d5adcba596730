-- For the kinds of Kueue that say how they are in a condition Active.
local health = {status = "Progressing", message = "waiting for Kueue to look at it"}
-- Kueue writes the conditions of its other kinds again only when they say something new.
local is_queue = obj.kind == "ClusterQueue" or obj.kind == "LocalQueue"
-- A sync ends on Healthy or Degraded only, so a held queue, and what waits for it, must not be Suspended.
-- Degraded ends it before the waves that follow: a worker that is down, or has no token yet, must not keep the queues
-- of all others from being written. What each says stays in the message.
local is_told_only = {
  ClusterQueue = {Stopped = true, AdmissionCheckInactive = true},
  LocalQueue = {Stopped = true, ClusterQueueIsInactive = true},
  AdmissionCheck = {SomeActiveClusters = true, NoUsableClusters = true},
  MultiKueueCluster = {
    BadKubeConfig = true, InsecureKubeConfig = true, BadClusterProfile = true, BadRestConfig = true,
    ClientConnectionFailed = true,
  },
}
local conditions = (obj.status or {}).conditions or {}
for _, condition in ipairs(conditions) do
  local seen = condition.observedGeneration
  local is_current = not is_queue or seen == nil or obj.metadata.generation == nil or seen >= obj.metadata.generation
  if condition.type == "Active" and is_current then
    health.message = (condition.reason or "") .. ": " .. (condition.message or "")
    if condition.status == "True" or (is_told_only[obj.kind] or {})[condition.reason or ""] then
      health.status = "Healthy"
    elseif condition.reason == "Terminating" or condition.reason == "NotFound" then
      health.status = "Progressing"
    elseif condition.status == "False" then
      health.status = "Degraded"
    end
  end
end
return health

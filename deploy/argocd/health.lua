-- Health of the kinds of Kueue that have a condition Active.
local health = {status = "Progressing", message = "waiting for Kueue to reconcile it"}
-- For its other kinds Kueue updates a condition, and its observedGeneration, only when the condition changes.
local is_queue = obj.kind == "ClusterQueue" or obj.kind == "LocalQueue"
-- A sync ends only when all objects are Healthy or Degraded, so a queue on hold, and objects that depend on it, must not
-- be Suspended. Degraded stops the sync before the next waves: a worker that is down, or has no token yet, must not block
-- the queues of all other workers. So these reasons count as Healthy; the message contains the condition.
local is_healthy_reason = {
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
    if condition.status == "True" or (is_healthy_reason[obj.kind] or {})[condition.reason or ""] then
      health.status = "Healthy"
    elseif condition.reason == "Terminating" or condition.reason == "NotFound" then
      health.status = "Progressing"
    elseif condition.status == "False" then
      health.status = "Degraded"
    end
  end
end
return health

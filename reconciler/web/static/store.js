// What the server sent last. Lists are kept by key, so that a change replaces only the entries that are different.

const KEYS = {
  clusters: ["name"],
  queues: ["id"],
  cohorts: ["cluster", "name"],
  joined: ["name"],
  jobs: ["id"],
  pools: ["cluster", "source", "name", "flavor"],
  tenants: ["name"],
  gaps: ["cluster", "what"],
};

export class Store {
  constructor() {
    this.lists = null;
    this.facts = {};
    this.scope = { fleet: true, namespaces: [] };
    this.isLive = true;
    this.plan = null;
    this.history = { times: [], series: [] };
    this.problem = "";
    this.connection = "connecting";
    this.denied = null;
    this.version = 0;
    this.clockOffset = 0;
    this.cache = new Map();
  }

  get isLoaded() {
    return this.lists !== null;
  }

  /** The time of the server: the clock of this machine may be wrong. */
  get now() {
    return performance.timeOrigin + performance.now() + this.clockOffset;
  }

  /** The time for which jobs are shown: that of a snapshot, or else now. */
  get asOf() {
    return this.isLive ? this.now : Date.parse(this.facts.takenAt);
  }

  /** Entries of a list; null if they are unknown. */
  list(name) {
    return this.once(`list ${name}`, () => (this.lists[name] ? [...this.lists[name].values()] : null));
  }

  /** A value that is computed once per version of the data. */
  once(name, compute) {
    const found = this.cache.get(name);
    if (found?.version === this.version) return found.value;
    if (this.cache.size > 40) this.cache.clear();
    const value = compute();
    this.cache.set(name, { version: this.version, value });
    return value;
  }

  take(name, data) {
    if (name === "view") this.takeView(data);
    else if (name === "change") this.takeChange(data);
    else if (name === "plan") this.plan = data;
    else if (name === "history") this.history = data;
    this.version += 1;
  }

  takeView({ view, scope, isLive, now, problem }) {
    this.lists = {};
    for (const name of Object.keys(KEYS)) {
      this.lists[name] = view[name] && new Map(view[name].map((entry) => [keyOf(name, entry), entry]));
    }
    Object.assign(this, { scope, isLive, problem, denied: null });
    this.takeFacts(view, now);
  }

  takeChange({ change, now, problem }) {
    for (const name of Object.keys(KEYS)) {
      if (change.unknown.includes(name)) {
        this.lists[name] = null;
        continue;
      }
      const list = (this.lists[name] ||= new Map());
      for (const key of change.remove[name] || []) list.delete(key);
      for (const entry of change.set[name] || []) list.set(keyOf(name, entry), entry);
    }
    this.problem = problem;
    this.takeFacts(change, now);
  }

  takeFacts({ fleet, revision, takenAt }, now) {
    this.facts = { fleet, revision, takenAt };
    this.clockOffset = Date.parse(now) - performance.timeOrigin - performance.now();
  }
}

function keyOf(name, entry) {
  return KEYS[name].map((field) => entry[field]).join("\n");
}

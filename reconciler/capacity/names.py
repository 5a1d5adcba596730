"""Names of the flavors that pools become.

A pool whose name can be a part of an object's name gets the name that kueue-nats gave it. Every other one is written in
the letters that are allowed, with a dot and a hash of its real name behind it. No pool can have that name itself,
because a pool's name is one token of a subject and holds no dot.
"""

import hashlib
import re

from reconciler.kueue.syntax import problem_of_label_value, problem_of_name

POOL_KEY = "pool.vk.io"
# Kept on the flavor where its name does not tell the pool.
POOL_ANNOTATION = "kfleet.dev/pool"
LONGEST = 253
HASH = 10


def flavor_name(master: str, entry: str, pool: str) -> str:
    plain = f"{master}-{entry}-{pool}"
    if "." not in pool and not problem_of_name(plain):
        return plain
    mark = hashlib.sha256(pool.encode()).hexdigest()[:HASH]
    written = re.sub(r"[^a-z0-9-]+", "-", f"{master}-{entry}-{pool.lower()}").strip("-")
    return f"{written[: LONGEST - HASH - 1].rstrip('-')}.{mark}"


def problem_of_pool(pool: str) -> str:
    """Why jobs cannot be sent to a pool at all; its name is the value of the toleration that routes them."""
    return problem_of_label_value(pool) if pool else "is empty"

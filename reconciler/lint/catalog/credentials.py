"""KF061 and KF062: how the manager logs in to its workers."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF061",
        Severity.WARNING,
        "credentials are of a worker",
        "the manager logs in to workers only",
        bad="kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager, credentials: {lifetime: 24h}}\n",
        good=(
            "kind: Cluster\nmetadata: {name: east, labels: {site: cnaf}}\n"
            "spec: {role: worker, credentials: {lifetime: 24h}}\n"
        ),
    ),
    Rule(
        "KF062",
        Severity.ERROR,
        "token lives for ten minutes at least",
        "an API server refuses to issue a token for less",
        bad=(
            "kind: Cluster\nmetadata: {name: east, labels: {site: cnaf}}\n"
            "spec: {role: worker, credentials: {lifetime: 5m}}\n"
        ),
        good=(
            "kind: Cluster\nmetadata: {name: east, labels: {site: cnaf}}\n"
            "spec: {role: worker, credentials: {lifetime: 10m}}\n"
        ),
        can_be_silenced=False,
    ),
    Rule(
        "KF069",
        Severity.WARNING,
        "git holds no Secret in clear text",
        "everyone who can read the repository, and its history, can read the Secret",
        bad="""\
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: astro}
stringData: {password: hunter2}
""",
        good="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: login, namespace: astro}
data: {secretName: login-of-vault}
""",
    ),
)

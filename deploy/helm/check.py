"""Renders the chart with a real Helm and holds what comes out against the schemas of Kubernetes.

`./test deploy` runs it with what requirements.txt pins. No cluster and no helm binary are needed. Ends with status 1 and says what is wrong.
"""

import pathlib
import sys
import tomllib

import helm_python as helm
import kubernetes_validate
import yaml

CHART = pathlib.Path(__file__).parent / "portcullis"
RULES = CHART / "portcullis.rules.yml"
# Kinds of the Prometheus operator, which are none of Kubernetes itself.
OPERATOR = {"PrometheusRule", "ServiceMonitor"}
# What the chart must refuse, and a word of why.
REFUSED = {
    "several nodes on SQLite": {"replicas": 2},
    "PostgreSQL without a URL": {"database": {"kind": "postgresql"}, "keys": {"signingKey": "k"}},
    "several nodes that sign with different keys": {
        "database": {"kind": "postgresql", "urlSecret": {"name": "db", "key": "url"}}
    },
    "several nodes that count by themselves": {
        "replicas": 2,
        "database": {"kind": "postgresql", "urlSecret": {"name": "db", "key": "url"}},
        "keys": {"signingKey": "k"},
    },
    "a value that there is not": {"replicaCount": 3},
    "an ingress without a host": {"ingress": {"enabled": True}},
    "a digest that is none": {"image": {"repository": "p", "digest": "sha256:1"}},
}


def rendered(values):
    chart = helm.Chart.load(str(CHART))
    chart.validate_schema(values)
    files = chart.render(values, name="gate", namespace="tools")
    documents = []
    for name, text in files.items():
        if name.endswith(".yaml"):
            documents += [it for it in yaml.safe_load_all(text) if it]
    return documents


def check(documents, values):
    """The faults of what was rendered."""
    kinds = {}
    for it in documents:
        kinds.setdefault(it["kind"], []).append(it)
        if it["kind"] not in OPERATOR:
            kubernetes_validate.validate(it, kubernetes_validate.latest_version(), strict=True)
    several = values.get("replicas", 1) > 1
    workload = kinds["StatefulSet"][0]
    pod = workload["spec"]["template"]["spec"]
    container = pod["containers"][0]
    env = {it["name"]: it for it in container["env"]}
    secure = container["securityContext"]
    selector = workload["spec"]["selector"]["matchLabels"]
    labels = workload["spec"]["template"]["metadata"]["labels"]
    drain_listen = int(env["PORTCULLIS_SERVER__DRAIN_LISTEN_SECONDS"]["value"])
    configured = tomllib.loads(kinds["ConfigMap"][0]["data"]["portcullis.toml"])
    drain = configured.get("server", {}).get("drain_seconds", 30)
    wanted = {
        "it runs as nobody": pod["securityContext"]["runAsNonRoot"] is True,
        "its root is read-only": secure["readOnlyRootFilesystem"] is True,
        "it has no capability": secure["capabilities"]["drop"] == ["ALL"],
        "it gains no privilege": secure["allowPrivilegeEscalation"] is False,
        "it has no token": pod["automountServiceAccountToken"] is False
        and kinds["ServiceAccount"][0]["automountServiceAccountToken"] is False,
        "no variable is made of services": pod["enableServiceLinks"] is False,
        "its name is the pod's": env["PORTCULLIS_SERVER__NODE"]["valueFrom"]["fieldRef"]["fieldPath"]
        == "metadata.name",
        "probes ask what they should": container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        and container["readinessProbe"]["httpGet"]["path"] == "/readyz",
        "probes have a port of their own": {
            container[probe]["httpGet"]["port"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        == {"health"}
        and "PORTCULLIS_SERVER__HEALTH_LISTEN" in env,
        "it takes calls until it is out of all lists": drain_listen >= 5,
        "it gets the time to end": pod["terminationGracePeriodSeconds"] >= drain_listen + 2 * drain + 10,
        "the selector fits": selector.items() <= labels.items(),
        "services select the pods": all(
            it["spec"]["selector"] == selector for it in kinds["Service"]
        ),
        "several nodes have a disruption budget": ("PodDisruptionBudget" in kinds) == several,
        "SQLite has a volume": ("volumeClaimTemplates" in workload["spec"]) != several,
        "the database is told by a secret": ("PORTCULLIS_DATABASE__URL" in env) == several,
        "so are the counters": ("PORTCULLIS_LIMITS__REDIS" in env) == several,
        "every mount has a volume": {it["name"] for it in container["volumeMounts"]}
        == {it["name"] for it in pod["volumes"]} | (set() if several else {"data"}),
        "there is a network policy": "NetworkPolicy" in kinds,
        "nothing is a secret": "Secret" not in kinds,
        "its alerts are those of the rules file": all(
            it["spec"] == yaml.safe_load(RULES.read_text()) for it in kinds.get("PrometheusRule", [])
        ),
    }
    for it in kinds["ConfigMap"]:
        for name, text in (it.get("data") or {}).items():
            if name.endswith(".toml"):
                tomllib.loads(text)
    return [what for what, holds in wanted.items() if not holds]


def main():
    faults = []
    report = helm.lint(str(CHART), strict=True)
    faults += [f"lint: {error}" for error in report["errors"]]
    cases = {"defaults": {}}
    for path in sorted((CHART / "ci").glob("*-values.yaml")):
        cases[path.name] = yaml.safe_load(path.read_text())
    for name, values in cases.items():
        documents = rendered(values)
        faults += [f"{name}: {fault}" for fault in check(documents, values)]
        print(f"{name}:", ", ".join(sorted(it["kind"] for it in documents)))
    for what, values in REFUSED.items():
        try:
            rendered(values)
            faults.append(f"{what} is not refused")
        except helm.HelmError as error:
            print(f"refused: {what}: {str(error).splitlines()[-1].strip()}")
    print("\n".join(faults) or "the chart is sound")
    return 1 if faults else 0


sys.exit(main())

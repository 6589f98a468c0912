#!/usr/bin/env python3
"""Holds the workflows of GitHub against what they have to be: YAML that its runner takes, with no right by
default and every action pinned. Needs PyYAML; says what is wrong and ends with status 1."""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@(v\d+(\.\d+)*|[0-9a-f]{40})$")
RIGHTS = {"contents", "packages", "id-token", "attestations"}


class Unique(yaml.SafeLoader):
    """Refuses a mapping in which a key stands twice."""


def mapping(loader, node):
    names = [loader.construct_object(key) for key, _ in node.value]
    if len(names) != len(set(map(str, names))):
        raise yaml.constructor.ConstructorError(None, None, "a key stands twice", node.start_mark)
    return {loader.construct_object(key): loader.construct_object(value, deep=True)
            for key, value in node.value}


Unique.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def faults(text):
    """What is wrong with a workflow, in words."""
    try:
        workflow = yaml.load(text, Loader=Unique)
    except yaml.YAMLError as error:
        return [f"is no YAML: {error}"]
    if not isinstance(workflow, dict) or not isinstance(workflow.get("jobs"), dict):
        return ["has no jobs"]
    found = []
    # YAML 1.1 reads `on` as a truth value.
    if not (workflow.get("on") or workflow.get(True)):
        found.append("says not when it runs")
    if workflow.get("permissions") != {}:
        found.append("gives rights to every job: write `permissions: {}` and let each job ask")
    for name, job in workflow["jobs"].items():
        found += [f"job {name}: {fault}" for fault in job_faults(job, workflow["jobs"])]
    return found


def job_faults(job, jobs):
    if not job.get("runs-on"):
        yield "has no machine"
    rights = job.get("permissions")
    if not isinstance(rights, dict) or not set(rights) <= RIGHTS:
        yield "does not name its rights one by one"
    needs = job.get("needs", [])
    for need in [needs] if isinstance(needs, str) else needs:
        if need not in jobs:
            yield f"needs {need}, which there is not"
    for step in job.get("steps") or [{}]:
        if ("uses" in step) == ("run" in step):
            yield f"step {step} neither runs nor uses one thing"
        elif "uses" in step and not PINNED.match(step["uses"]):
            yield f"{step['uses']} is not pinned"
        for script in re.findall(r"(?:deploy|tests)/[\w./-]+", str(step.get("run", ""))):
            if not (ROOT / script).exists():
                yield f"names {script}, which there is not"


def self_test():
    """Whoever breaks a workflow is told."""
    good = ("on: push\npermissions: {}\njobs:\n  a:\n    runs-on: x\n    permissions: {contents: read}\n"
            "    steps: [{uses: actions/checkout@v5}]\n")
    assert faults(good) == [], faults(good)
    for old, new in [("jobs:", "jobs: ["), ("permissions: {}\n", ""), ("@v5", "@main"),
                     ("    runs-on: x\n", ""), ("{contents: read}", "write-all"),
                     ("    runs-on: x\n", "    runs-on: x\n    needs: b\n"),
                     ("uses: actions/checkout@v5", "run: deploy/absent.sh"),
                     ("on: push\n", "on: push\non: push\n")]:
        assert faults(good.replace(old, new)), new


def main():
    self_test()
    wrong = 0
    paths = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
    for path in paths:
        for fault in faults(path.read_text()):
            print(f"{path.relative_to(ROOT)}: {fault}")
            wrong += 1
    if not wrong:
        print(f"workflows: {len(paths)} read")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())

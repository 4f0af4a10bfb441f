"""Scenarios with jobs, which tests of several files run."""

SCENARIO = {
    "name": "jobs",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "workload": [
        {"kind": "collective", "group": "ring", "bytes": "400KB", "ranks": 4, "repeat": 3, "compute": "5us"},
        {
            "kind": "collective",
            "group": "shuffle",
            "operation": "all-to-all",
            "bytes": "400KB",
            "ranks": 4,
            "placement": "random",
        },
    ],
}

TRAINING = {
    "name": "training",
    "topology": {"kind": "rail", "nodes": 4, "gpus": 4, "spines": 2},
    "transport": {"controller": {"kind": "dcqcn"}},
    "workload": [
        {
            "kind": "training",
            "layers": 4,
            "hidden": 256,
            "sequence": 128,
            "vocabulary": 0,
            "teraflops": 5.0,
            "tensor": 4,
            "scale_up_rate": "1Tbps",
            "micro_batches": 2,
            "jitter": 0.1,
        }
    ],
}

STEPS = {"workload.0.steps": 3, "workload.0.tensor": 2, "workload.0.pipeline": 2}

# SPDX-License-Identifier: Apache-2.0
"""A whole bundle, as levels and the proof read it: docs/bundle.md holds, references and envelopes
fit, the proof would have power."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture.faults import FAULTS, POWER, NotApplicable, apply_fault, shared_copy  # noqa: E402
from capture.reference import (  # noqa: E402
    Runner,
    double_copy,
    envelope,
    envelope_error,
    output_errors,
    reference_float64,
)
from strata_sdk.errors import UnsupportedError  # noqa: E402
from strata_sdk.models import (  # noqa: E402
    TapModule,
    build_model,
    build_module,
    call,
    example_inputs,
    graph_module,
    read_bundle,
)
from strata_sdk.preparing import read_exported  # noqa: E402

SETS = ("timed", "generic1", "generic2")


def entry_of(tensors: dict, owner: str, index: int) -> dict:
    prefix = f"{owner}/{index}/"
    return {
        k.removeprefix(prefix): v
        for k, v in tensors.items()
        if k.startswith(prefix) and "tap:" not in k
    }


@pytest.fixture(params=["resnet18", "mnist", "keywords"])
def folder(request, bundles) -> Path:
    return bundles(request.param)


def runs_of(folder: Path, name: str) -> tuple[dict, list]:
    """Variant -> outputs by entry, and the reference by entry."""
    envelope = load_file(folder / "reference" / f"{name}.envelope.safetensors")
    reference = load_file(folder / "reference" / f"{name}.safetensors")
    count = 1 + max(int(k.split("/")[1]) for k in reference)
    return {
        v: [entry_of(envelope, v, i) for i in range(count)]
        for v in {k.split("/")[0] for k in envelope}
    }, [entry_of(reference, "f64", i) for i in range(count)]


def test_bundle_json_describes_what_the_folder_holds(folder):
    bundle = read_bundle(folder)
    ring = load_file(folder / "inputs.safetensors")
    assert sorted(ring) == sorted(
        f"{i}/{one['name']}" for i in range(bundle["ring"]) for one in bundle["inputs"]
    )
    for one in bundle["inputs"]:
        assert (
            list(ring[f"0/{one['name']}"].shape) == one["shape"]
            and str(ring[f"0/{one['name']}"].dtype) == f"torch.{one['dtype']}"
        )
    assert bundle["input_bytes"] == sum(ring[f"0/{one['name']}"].nbytes for one in bundle["inputs"])
    module = build_model(bundle["case"]["model"]).module
    for name in SETS:
        weights = load_file(folder / "weights" / f"{name}.safetensors")
        assert set(weights) == set(module.state_dict())
        assert bundle["weight_bytes"] == sum(t.nbytes for t in weights.values())
    assert bundle["parameters"] == sum(p.numel() for p in module.parameters())
    assert bundle["activation_bytes"] > 0 and bundle["reference"] == "float64"


def test_every_input_of_the_ring_differs(folder):
    ring = load_file(folder / "inputs.safetensors")
    for one in read_bundle(folder)["inputs"]:
        values = [v for k, v in ring.items() if k.endswith(f"/{one['name']}")]
        if one["dtype"] == "float32":
            assert all(not torch.equal(a, b) for i, a in enumerate(values) for b in values[:i])


def test_timed_reference_has_all_inputs_and_generic_sets_two(folder):
    for name, count in zip(SETS, (read_bundle(folder)["ring"], 2, 2)):
        assert len(runs_of(folder, name)[1]) == count


class NeedsOneDNN(torch.nn.Module):
    """As one with an operation that PyTorch's own kernels do not have for its type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.backends.mkldnn.enabled:
            raise RuntimeError("not implemented for 'Half'")
        return x * 2


def test_inputs_that_levels_have_not_seen_differ_from_the_ring_and_have_eager_s_answers(folder):
    bundle = read_bundle(folder)
    unseen = load_file(folder / "reference" / "unseen.safetensors")
    ring = load_file(folder / "inputs.safetensors")
    error = envelope_error(*runs_of(folder, "timed"))
    places = sorted({int(k.split("/")[1]) for k in unseen if k.startswith("f64/")})
    assert places == list(range(bundle["ring"], bundle["ring"] + 6))
    module = build_model(bundle["case"]["model"]).module
    module.load_state_dict(load_file(folder / "weights" / "timed.safetensors"))
    for place in places:
        entry = {d["name"]: unseen[f"{place}/{d['name']}"] for d in bundle["inputs"]}
        for i in range(bundle["ring"]):
            assert any(not torch.equal(v, ring[f"{i}/{k}"]) for k, v in entry.items())
        answers = call(module.eval(), entry, bundle)
        expected = entry_of(unseen, "f64", place)
        assert max(output_errors(answers, expected).values()) <= 8 * error


def test_a_legitimate_run_that_the_network_cannot_do_is_left_out_for_another():
    bundle = {"inputs": [{"name": "x", "keyword": False}]}
    runs = envelope(Runner(bundle, "cpu"), NeedsOneDNN(), [{"x": torch.ones(2, 3)}], seed=1)
    assert "plain_kernels" not in runs and len(runs) == 5
    assert torch.backends.mkldnn.enabled


class Averaged(torch.nn.Module):
    """Over 100,000 positions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1).mean(1)

    @staticmethod
    def elsewhere(x: torch.Tensor) -> torch.Tensor:
        """One position after the other."""
        total = (x + 1).numpy().cumsum(1, dtype="float32")[:, -1]
        return torch.from_numpy(total) / x.shape[1]


class Cancelling(torch.nn.Module):
    """A sum whose neighbours nearly cancel."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.rand(64, 2048, generator=torch.Generator().manual_seed(2))
        self.weight = torch.nn.Parameter(torch.stack([weight, -1.001 * weight], 2).flatten(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.stack([x, x], 2).flatten(1)
        return torch.nn.functional.linear(x, self.weight)

    def elsewhere(self, x: torch.Tensor) -> torch.Tensor:
        """In eight lanes, of which each has terms of one sign."""
        x = torch.stack([x, x], 2).flatten(1)
        parts = [x[:, lane::8] @ self.weight[:, lane::8].t() for lane in range(8)]
        return torch.stack(parts).sum(0).detach()


@pytest.mark.parametrize(
    ("network", "shape"), [(Averaged, (2, 100_000, 4)), (Cancelling, (16, 2048))]
)
def test_what_an_engine_adds_in_another_order_than_eager_is_within_the_bound(network, shape):
    module = network()
    runner = Runner({"inputs": [{"name": "x", "keyword": False}]}, "cpu")
    entry = {"x": torch.rand(shape, generator=torch.Generator().manual_seed(1))}
    runs = envelope(runner, module, [entry], seed=1)
    expected = reference_float64(runner, double_copy(module), [entry])
    assert set(expected[0]) == {"output"}
    got = {"output": module.elsewhere(entry["x"])}
    [error] = output_errors(got, expected[0]).values()
    assert 0 < error <= 8 * envelope_error(runs, expected)


def test_envelope_has_five_legitimate_runs_that_differ_only_by_rounding(folder):
    for name in SETS:
        runs, reference = runs_of(folder, name)
        assert len(runs) >= 5 and "default" in runs
        assert 8 * 2.0**-24 <= envelope_error(runs, reference) < 1e-3


def test_eager_from_the_bundle_lies_inside_the_envelope(folder):
    bundle = read_bundle(folder)
    for name in SETS:
        runs, reference = runs_of(folder, name)
        module, _ = build_module(folder, name)
        for i in (0, 1):
            got = Runner(bundle, "cpu").run(module, example_inputs(folder, i))
            assert max(output_errors(got, reference[i]).values()) <= 8 * envelope_error(
                runs, reference
            )


def test_generic_sets_leave_no_tensor_at_zero_or_one_and_share_none(folder):
    sets = [load_file(folder / "weights" / f"{name}.safetensors") for name in SETS]
    parameters = dict(build_model(read_bundle(folder)["case"]["model"]).module.named_parameters())
    for name, value in sets[1].items():
        if not value.is_floating_point() or not (name in parameters or "running_" in name):
            continue
        assert not torch.equal(value, sets[0][name]) and not torch.equal(value, sets[2][name]), name
        assert ((value == 0) | (value == 1)).float().mean() < 0.01, name


def test_outputs_follow_the_inputs_under_generic_weights(folder):
    for name in SETS[1:]:
        _, reference = runs_of(folder, name)
        best = 0.0
        for output in reference[0]:
            values = torch.cat(
                [r[output].double().reshape(r[output].shape[0], -1) for r in reference]
            )
            best = max(best, (values.std(0).square().mean().sqrt() / values.mean(0).std()).item())
        assert best > 0.1


def test_every_planted_fault_is_far_beyond_the_bound(folder):
    runs, reference = runs_of(folder, "generic1")
    faults = load_file(folder / "reference" / "faults.safetensors")
    names = read_bundle(folder)["faults"]
    assert (
        len(names) >= 2
        and set(names) == {k.split("/")[0] for k in faults}
        and set(names) <= set(POWER)
    )
    for name in names:
        assert max(
            output_errors(entry_of(faults, name, 0), reference[0]).values()
        ) > 80 * envelope_error(runs, reference), name


@pytest.mark.parametrize(
    "fault", ["bn_eps", "one_bn_eps", "bn_train_mode", "bn_gamma_one", "bf16", "tf32_emulated"]
)
def test_finer_faults_show_under_generic_weights_too(fault, bundles):
    folder = bundles("resnet18")
    runs, reference = runs_of(folder, "generic1")
    module, _ = build_module(folder, "generic1")
    assert apply_fault(module, fault)
    got = Runner(read_bundle(folder), "cpu").run(module, example_inputs(folder, 0))
    assert max(output_errors(got, reference[0]).values()) > 64 * envelope_error(runs, reference)


def test_planting_in_a_shared_copy_leaves_the_original_whole(bundles):
    folder = bundles("resnet18")
    module, _ = build_module(folder, "generic1")
    before = {k: v.clone() for k, v in module.state_dict().items()}
    for fault in POWER:
        try:
            apply_fault(shared_copy(module), fault)
        except NotApplicable:
            assert fault == "ln_beta_zero"
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert set(POWER) <= set(FAULTS)


def test_export_computes_the_same_and_keeps_pytorch_names(bundles):
    folder = bundles("keywords")
    bundle = read_bundle(folder)
    assert bundle["export"] == {"ok": True, "what": "", "where": ""}
    program = read_exported(folder)
    module, _ = build_module(folder, "timed")
    assert all(
        torch.equal(value, module.state_dict()[name]) for name, value in program.state_dict.items()
    )
    assert [
        torch.equal(a, b)
        for a, b in zip(program.example_inputs[0], example_inputs(folder).values())
    ] == [True] * len(bundle["inputs"])
    assert set(program.state_dict) == set(module.state_dict())
    entry = example_inputs(folder, 1)
    got = program.module()(*entry.values())
    expected = call(module, entry, bundle)
    assert [o["name"] for o in bundle["outputs"]] == list(expected)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(got, expected.values()))


def test_the_exported_network_holds_no_weights_of_its_own(bundles):
    """They would lie in every case's folder again."""
    folder = bundles("resnet18")
    assert (
        read_bundle(folder)["export"]["ok"]
        and (folder / "model.pt2").stat().st_size
        < 1e6
        < (folder / "weights" / "timed.safetensors").stat().st_size
    )
    expected, _ = build_module(folder, "generic2")
    got = read_exported(folder, "generic2").module()(*example_inputs(folder, 1).values())
    assert torch.allclose(got[0], expected(*example_inputs(folder, 1).values()), atol=1e-4)


def test_what_another_pytorch_exported_and_this_one_cannot_read_is_unsupported_and_says_whose_environment_comes_first(
    bundles, tmp_path
):
    folder = tmp_path / "bundle"
    shutil.copytree(bundles("keywords"), folder)
    bundle = read_bundle(folder)
    (folder / "model.pt2").write_bytes(b"of another version")
    with pytest.raises(Exception) as own:
        read_exported(folder)
    assert not isinstance(own.value, UnsupportedError)
    (folder / "bundle.json").write_text(json.dumps(bundle | {"torch": "99.1.0"}), encoding="utf-8")
    with pytest.raises(
        UnsupportedError,
        match=f"captured by PyTorch 99.1.0, whose export PyTorch {re.escape(torch.__version__)} cannot read",
    ) as other:
        read_exported(folder)
    assert "the older PyTorch first among --env" in other.value.hint


def test_a_data_dependent_branch_is_told_with_file_and_line(bundles):
    folder = bundles("branching")
    bundle = read_bundle(folder)
    assert bundle["export"]["ok"] is False and not (folder / "model.pt2").exists()
    file, _, line = bundle["export"]["where"].rpartition(":")
    assert "if " in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert (folder / "reference" / "timed.safetensors").exists()


def test_an_input_that_the_model_changes_is_copied_first(bundles):
    folder = bundles("in_place")
    entry = example_inputs(folder, 0)
    module, _ = build_module(folder, "timed")
    before = {k: v.clone() for k, v in entry.items()}
    Runner(read_bundle(folder), "cpu").run(module, entry)
    assert all(torch.equal(v, before[k]) for k, v in entry.items())


def test_deep_bundles_tap_every_leaf_in_order_of_execution(bundles):
    folder = bundles("mnist_deep")
    taps = [o["name"] for o in read_bundle(folder)["outputs"] if o["name"].startswith("tap:")]
    assert taps == [
        f"tap:{n}"
        for n in (
            "conv1",
            "relu1",
            "conv2",
            "relu2",
            "pool",
            "dropout1",
            "fc1",
            "relu3",
            "dropout2",
            "fc2",
        )
    ]
    reference = load_file(folder / "reference" / "generic1.safetensors")
    assert all(f"f64/0/{t}" in reference for t in taps) and not any(
        "tap:" in k for k in reference if "/1/" in k
    )


@pytest.mark.parametrize("how", ["eager", "trace", "export"])
def test_taps_and_flat_views_work_traced_and_exported(how):
    module = build_model("resnet18").module.requires_grad_(False)
    x = torch.randn(1, 3, 32, 32)
    bundle = {"inputs": [{"name": "arg0", "keyword": False}]}
    expected = call(TapModule(module), {"arg0": x}, bundle)
    view = graph_module(TapModule(build_model("resnet18").module.requires_grad_(False)), bundle)
    view.load_state_dict(module.state_dict())
    run = {
        "eager": lambda: view,
        "trace": lambda: torch.jit.trace(view, (x,)),
        "export": lambda: torch.export.export(view, (x,), strict=False).module(),
    }[how]()
    got = run(x)
    assert "tap:layer1.0.relu#2" in expected and len(got) == len(expected)
    assert all(torch.allclose(a, b, atol=1e-4, rtol=1e-3) for a, b in zip(got, expected.values()))
    assert list(view.state_dict()) == list(module.state_dict())


def test_shipped_models_have_the_parameters_that_their_folders_state():
    for path in (ROOT / "models").glob("*/model.json"):
        for name, count in json.loads(path.read_text(encoding="utf-8"))["parameters"].items():
            with torch.device("meta"):
                assert sum(p.numel() for p in build_model(name).module.parameters()) == count


def test_weights_load_into_modules_that_ask_for_their_version():
    """torchvision's MNASNet refuses a state without one."""
    from strata_sdk.models import load_weights

    module = build_model("mnasnet0_5", 0).module
    weights = {
        name: torch.full_like(value, 0.25) if value.is_floating_point() else value
        for name, value in module.state_dict().items()
    }
    load_weights(module, weights, "weights.safetensors")
    assert all(torch.equal(value, weights[name]) for name, value in module.state_dict().items())

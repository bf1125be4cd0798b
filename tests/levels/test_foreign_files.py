# SPDX-License-Identifier: Apache-2.0
"""Model files made to do harm: what they would run when they are loaded is refused before PyTorch
reads them, with the place in the file; ordinary ones of every kind pass.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "sdk" / "python")]

from strata_sdk import archive_checks, exported_checks, script_checks  # noqa: E402
from strata_sdk.models import ModelError, build_model  # noqa: E402


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x, scale: float = 2.0):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)) * scale)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("good") / "net.pt2"
    torch.export.save(
        torch.export.export(
            Net().eval(),
            (torch.randn(2, 3, 8, 8), 2.0),
            dynamic_shapes={"x": {0: Dim("batch", min=2, max=8)}, "scale": None},
        ),
        str(path),
    )
    return path


@pytest.fixture(scope="module")
def scripted(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("good") / "net.pt"
    torch.jit.script(nn.Sequential(nn.Linear(3, 4), nn.ReLU())).save(str(path))
    return path


def rewritten(source: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy whose records are what `change` gives for them; PyTorch wants them stored."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return target


def evil(exported: Path, target: Path, change: Callable[[dict], None]) -> Path:
    def one(name: str, content: bytes) -> bytes:
        if not (name.endswith(".json") and "/models/" in name):
            return content
        program = json.loads(content)
        change(program)
        return json.dumps(program).encode()

    return rewritten(exported, target, one)


def set_guard(text: str) -> Callable[[dict], None]:
    return lambda program: program.__setitem__("guards_code", [text])


def set_size(text: str) -> Callable[[dict], None]:
    def change(program: dict) -> None:
        for meta in program["graph_module"]["graph"]["tensor_values"].values():
            for size in meta["sizes"]:
                if "as_expr" in size:
                    size["as_expr"]["expr_str"] = text

    return change


def set_placeholder(text: str) -> Callable[[dict], None]:
    def change(program: dict) -> None:
        graph = program["graph_module"]["graph"]
        old = next(i for i in reversed(graph["inputs"]) if "as_tensor" in i)["as_tensor"]["name"]
        program["graph_module"] = json.loads(
            json.dumps(program["graph_module"]).replace(json.dumps(old), json.dumps(text))
        )

    return change


def set_constant(field: str, value: object) -> Callable[[dict], None]:
    def change(program: dict) -> None:
        for spec in program["graph_module"]["signature"]["input_specs"]:
            if "constant_input" in spec:
                spec["constant_input"][field] = value

    return change


def set_target(text: str) -> Callable[[dict], None]:
    return lambda program: program["graph_module"]["graph"]["nodes"][0].__setitem__("target", text)


def set_tree(field: str, text: str) -> Callable[[dict], None]:
    def change(program: dict) -> None:
        signature = program["graph_module"]["module_call_graph"][0]["signature"]
        signature[field] = text

    return change


def set_fqn(text: str) -> Callable[[dict], None]:
    return lambda program: next(
        s for s in program["graph_module"]["signature"]["input_specs"] if "parameter" in s
    )["parameter"].__setitem__("parameter_name", text)


def set_trace(text: str) -> Callable[[dict], None]:
    return lambda program: program["graph_module"]["graph"]["nodes"][0]["metadata"].__setitem__(
        "stack_trace", text
    )


CALL = "__import__('pathlib').Path('MARK').touch()"
EVIL = {
    "a guard": set_guard(f"{CALL} is None"),
    "a guard's text": set_guard("L['x'].size()[0] >= 2, '') or " + CALL + " or ('"),
    "a guard's key": set_guard("L['x\\'] + " + CALL + "#'] == 1"),
    "a guard's lambda": set_guard("(lambda: 1)() == 1"),
    "a size": set_size(CALL),
    "a size's attribute": set_size("s0.__class__"),
    "a size's method": set_size("Max.__subclasses__()"),
    "a size's comprehension": set_size("[x for x in (1,)]"),
    "a size's power": set_size("9**9**9"),
    "a size's power by a function": set_size("PowByNatural(2, 10**12)"),
    "a size's text": set_size("Max('1', 2)"),
    "a size's symbol": set_size("Symbol('s0', cls=print)"),
    "a symbol's name": set_size(f'Symbol("{CALL}")'),
    "a placeholder": set_placeholder(f"x: {CALL}"),
    "a placeholder's keyword": set_placeholder("lambda"),
    "a placeholder's line": set_placeholder("x\nimport os"),
    "a function": set_target("torch.hub.load"),
    "a function of files": set_target("torch.ops.aten.from_file.default"),
    "a function of Python": set_target("_operator.methodcaller"),
    "a function of modules": set_target("torch.os.system"),
    "a custom function": set_target("torch.ops.mine.op.default"),
    "a function's dunder": set_target("torch.ops.aten.__class__.default"),
    "an extension": set_target("#python:os"),
    "a tree's enumeration": set_tree(
        "in_spec",
        json.dumps(
            [
                1,
                {
                    "type": "builtins.dict",
                    "context": json.dumps({"__enum__": True, "fqn": "antigravity:x", "name": "y"}),
                    "children_spec": [],
                },
            ]
        ),
    ),
    "a tree's factory": set_tree(
        "out_spec",
        json.dumps(
            [
                1,
                {
                    "type": "collections.defaultdict",
                    "context": json.dumps(
                        {
                            "default_factory_module": "os",
                            "default_factory_name": "abort",
                            "dict_context": [],
                        }
                    ),
                    "children_spec": [],
                },
            ]
        ),
    ),
    "a tree's key": set_tree(
        "in_spec",
        json.dumps(
            [
                1,
                {
                    "type": "builtins.dict",
                    "context": json.dumps([f'x"); {CALL}; ("']),
                    "children_spec": [],
                },
            ]
        ),
    ),
    "a parameter's name": set_fqn(f'a") or {CALL} or ("'),
    "a constant": set_constant("value", {"as_string": f"' or {CALL} or '"}),
    "a constant's name": set_constant("name", f"scale={CALL}"),
    "a comment": set_trace(f"File\r{CALL}"),
}


@pytest.mark.parametrize("what", EVIL)
def test_an_exported_program_that_would_run_code_is_refused_before_it_is_read(
    what, exported, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = evil(exported, tmp_path / "evil.pt2", EVIL[what])
    with pytest.raises(ModelError) as raised:
        build_model(str(path))
    assert raised.value.code == "usage" and "is refused" in raised.value.what, raised.value.what
    assert not (tmp_path / "MARK").exists()


@pytest.mark.parametrize("what", ["a guard", "a size", "a constant's name"])
def test_these_files_do_run_code_in_pytorch_itself(what, exported, tmp_path, monkeypatch):
    """Else the test above would prove nothing."""
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(Exception):
        torch.export.load(str(evil(exported, tmp_path / "evil.pt2", EVIL[what]))).module()(
            torch.randn(2, 3, 8, 8), 2.0
        )
    assert (tmp_path / "MARK").exists()


class Exercises(nn.Module):
    """Sizes, conditions and containers as real networks have them."""

    def forward(self, x, pairs: dict[str, torch.Tensor]):
        n = x.shape[0]
        y = x.reshape(n * x.shape[1] // 2, -1).view(n, -1)[: max(n - 1, 1)]
        z = torch.einsum("ij,kj->ik", y, y) + torch.full((y.shape[0], 1), n / 2 + n % 3)
        return {
            "sum": z,
            "more": (
                torch.cat([pairs["a"], pairs["b"]]),
                [
                    nn.functional.gelu(x, approximate="tanh"),
                    nn.functional.interpolate(x[None], scale_factor=2.0),
                ],
            ),
        }


def test_networks_with_open_sizes_and_containers_pass(tmp_path):
    batch = Dim("batch", min=2, max=64)
    program = torch.export.export(
        Exercises(),
        (torch.randn(4, 8), {"a": torch.randn(4, 2), "b": torch.randn(3, 2)}),
        dynamic_shapes={"x": {0: Dim.DYNAMIC}, "pairs": {"a": {0: batch}, "b": None}},
    )
    torch.export.save(program, str(tmp_path / "x.pt2"))
    exported_checks.check(tmp_path / "x.pt2")


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


class Counts(nn.Module):
    def forward(self, x):
        n = (x > 0).sum().item()
        torch._check(n >= 0)
        torch._check(n <= 100)
        return torch.zeros(n + 1) + n


@pytest.mark.parametrize(
    "net",
    [
        Branches(),
        Counts(),
        nn.LSTM(4, 5, 2),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        nn.Sequential(nn.Conv1d(4, 4, 1), nn.GroupNorm(2, 4), nn.SiLU()),
    ],
)
def test_networks_of_other_kinds_pass(net, tmp_path):
    example = {
        "LSTM": (3, 2, 4),
        "TransformerEncoderLayer": (2, 3, 8),
        "Sequential": (2, 4, 6),
    }.get(type(net).__name__, (4, 4))
    torch.export.save(
        torch.export.export(net.eval(), (torch.randn(example),)), str(tmp_path / "x.pt2")
    )
    exported_checks.check(tmp_path / "x.pt2")


@pytest.mark.parametrize(
    "text",
    [
        "s0",
        "s0 + 1",
        "2*s77",
        "Max(1, s0//2)",
        "FloorDiv(s0 + 3, 2)*8",
        "Mod(s0, 8)",
        "u0 + zuf0",
        "-s0 + 3",
        "s0**2",
        "Add(IntTrueDiv(Symbol('s77', positive=True, integer=True), Integer(2)), Float('1.5', precision=53))",
        "Pow(Symbol('u0', integer=True), Integer(2))",
        "(s0 > 3) & (s1 < 2)",
        "ceiling(s0/2)",
        "Eq(s0, 4)",
        "1.5",
    ],
)
def test_arithmetic_of_sizes_passes(text):
    assert exported_checks.expression(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "L['x'].size()[0] >= 2",
        "L['args'][0][1].size()[2] % 8 == 0",
        "2 <= L['x'].size()[0] and L['x'].size()[0] <= 1024",
        "L['flat_args'][0].stride()[0] == 1 + 2*L['y'].size()[1]",
        "math.isnan(L['scale'])",
        "Mod(L['x'].size()[0], 4) == 0",
        "not L['flag'] == 1",
    ],
)
def test_guards_as_pytorch_writes_them_pass(text):
    assert exported_checks.expression(text, guard=True) is None


# ------------------------------------------------------------------------------------------------
# --- TorchScript


def is_linear(name: str, content: bytes) -> bool:
    """Whether it is the code of a linear layer; its file has another name where a process scripts a
    second one."""
    return name.endswith(".py") and b"torch.linear(" in content


def scripted_with(line: str, scripted: Path, path: Path) -> Path:
    """`scripted` with another line in front of its linear layer's first one."""

    def one(name: str, content: bytes) -> bytes:
        return (
            content.replace(b"    weight = self", f"    {line}\n    weight = self".encode())
            if is_linear(name, content)
            else content
        )

    return rewritten(scripted, path, one)


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("torch.save(input, 'MARK')", True),
        ("input = torch.add(input, torch.sum(torch.from_file('MARK', True, 4)))", True),
        ("input.save('MARK')", False),
        ("torch.save(self, 'MARK')", False),
    ],
)
def test_a_script_that_would_reach_files_is_refused_before_it_is_read(
    line, runs, scripted, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = scripted_with(line, scripted, tmp_path / "evil.pt")
    with pytest.raises(ModelError) as raised:
        build_model(str(path))
    assert (
        raised.value.code == "usage"
        and "is refused" in raised.value.what
        and re.search(r"code/.*\.py:\d+", raised.value.what)
    ), raised.value.what
    assert not (tmp_path / "MARK").exists()
    if runs:  # in PyTorch itself; else this would prove nothing
        torch.jit.load(str(path))(torch.zeros(1, 3))
        assert (tmp_path / "MARK").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("torch.linear", "ops.mine.linear"),
        lambda t: t.replace("torch.linear(", 'getattr(torch, "sa\\x76e")('),
        lambda t: t + "\nimport os\n",
        lambda t: t + "\nx = __torch__.torch.classes.dist_rpc.WorkerInfo\n",
        lambda t: "(" * 5000 + t,
        lambda t: t.replace("    weight = self", "    f = torch.save\n    weight = self"),
    ],
)
def test_code_that_names_what_is_not_on_the_list_is_refused(change, scripted, tmp_path):
    path = rewritten(
        scripted,
        tmp_path / "evil.pt",
        lambda name, content: (
            change(content.decode()).encode() if is_linear(name, content) else content
        ),
    )
    with pytest.raises(archive_checks.Refused):
        script_checks.check(path)


def test_ordinary_scripts_pass(scripted, tmp_path):
    script_checks.check(scripted)
    for i, (net, example) in enumerate(
        [
            (nn.LSTM(4, 5, 2), torch.randn(3, 2, 4)),
            (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 3, 8)),
            (Net().eval(), torch.randn(1, 3, 8, 8)),
        ]
    ):
        torch.jit.trace(net, example, check_trace=False).save(str(tmp_path / f"{i}.pt"))
        script_checks.check(tmp_path / f"{i}.pt")
        torch.jit.freeze(torch.jit.script(net.eval())).save(str(tmp_path / f"{i}s.pt"))
        script_checks.check(tmp_path / f"{i}s.pt")


# ------------------------------------------------------------------------------------------------
# --- sizes


def test_an_archive_that_unpacks_out_of_proportion_is_refused(
    exported, scripted, tmp_path, monkeypatch
):
    monkeypatch.setattr(archive_checks, "FREE_BYTES", 100_000)
    for source, kind in ((exported, "pt2"), (scripted, "pt")):
        path = tmp_path / f"bomb.{kind}"
        with (
            zipfile.ZipFile(source) as old,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for name in old.namelist():
                new.writestr(name, old.read(name))
            new.writestr(f"{old.namelist()[0].split('/')[0]}/extra/zeros", b"\0" * 50_000_000)
        with pytest.raises(ModelError, match=r"unpack to .* times as much; allowed are 20 times"):
            build_model(str(path))
        monkeypatch.setenv("STRATA_MAX_EXPANSION", "1e6")
        build_model(str(path))
        monkeypatch.delenv("STRATA_MAX_EXPANSION")


def test_programs_and_tensors_of_other_names_are_not_overlooked(exported, tmp_path):
    with zipfile.ZipFile(evil(exported, tmp_path / "evil.pt2", EVIL["a guard"])) as source:
        [program] = [name for name in source.namelist() if "/models/" in name]
        content = source.read(program)
    with zipfile.ZipFile(exported) as old, zipfile.ZipFile(tmp_path / "two.pt2", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr(program.replace("model.json", "second.txt"), content)
    with pytest.raises(archive_checks.Refused, match=r"second\.txt: guards_code"):
        exported_checks.check(tmp_path / "two.pt2")

    def objects(name: str, content: bytes) -> bytes:
        if not name.endswith("_weights_config.json"):
            return content
        config = json.loads(content)
        next(iter(config["config"].values()))["path_name"] = "custom_obj_0/../weight_0"
        return json.dumps(config).encode()

    with pytest.raises(archive_checks.Refused, match="no tensor"):
        exported_checks.check(rewritten(exported, tmp_path / "objects.pt2", objects))


def test_a_tensor_without_bytes_that_claims_a_size_is_refused(exported, tmp_path):
    path = rewritten(
        exported,
        tmp_path / "evil.pt2",
        lambda name, content: b"" if name.endswith("weights/weight_0") else content,
    )
    with pytest.raises(ModelError, match="has no bytes and claims"):
        build_model(str(path))

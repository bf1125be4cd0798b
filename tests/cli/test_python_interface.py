# SPDX-License-Identifier: Apache-2.0
"""`import stratabench`: networks that are objects, typed results, errors and interrupts
(docs/python.md), with levels that do as they are told."""

from __future__ import annotations

import copy
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest
import torch
from conftest import IMAGES, MODEL, PROGRAM, ROOT, samples

sys.path.insert(0, str(ROOT / "python"))

import stratabench
from stratabench import engine, live, options

SHORT = {"threads": 1, "restarts": 1, "budget_s": 1.0, "order_seed": 7}


@pytest.fixture
def asked(strata, monkeypatch):
    """The program with two levels, for this process's own questions."""
    strata.level("slow", rank=1, **samples(2_000_000))
    strata.level("fast", rank=2, **samples(1_000_000))
    for name, value in (strata.environment | {"STRATA_PROGRAM": str(PROGRAM)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(engine, "is_own", lambda python: True)
    monkeypatch.chdir(strata.folder)
    return strata


def compared(asked, model=MODEL, example=None, **more):
    return stratabench.compare(
        model,
        example,
        store=asked.store,
        progress=False,
        **({"levels": ["slow", "fast"]} | SHORT | more),
    )


def test_a_comparison_is_a_value_with_types(asked):
    result = compared(asked)
    assert [row.name for row in result.rows] == ["slow", "fast"] and result.exit_code == 0
    fast = result["fast"]
    assert fast.state == "measured" and fast.time_ms == pytest.approx(1, rel=0.05)
    assert fast.speedup.value == pytest.approx(2, rel=0.05)
    assert fast.proof and fast.proof.checks[0].result == "pass" and result.certificate["fast"]
    assert result["slow"].speedup.verdict == "reference"
    with pytest.raises(KeyError, match="it has slow, fast"):
        result["fats"]
    table = result.table()
    assert list(table.index) == ["slow", "fast"] and table.loc["fast", "time_ms"] == fast.time_ms
    assert table["speedup_low"].dtype == float
    assert stratabench.open_store(asked.store).show().json == result.json


def test_a_profile_is_a_frame_of_operations(asked):
    told = [["linear", "first", 2_000_000, 10_000], ["relu", "", 1_000_000, 0]]
    asked.level("one", rank=3, operations=told)
    result = stratabench.profile(
        MODEL, store=asked.store, progress=False, levels=["one", "slow"], **SHORT
    )
    profile = result["one"].profile
    assert profile and [each.layer for each in profile.operations] == ["first", ""]
    assert profile.operations[0].ms == pytest.approx(2) and profile.between_ms > 0.009
    assert "does not time" in result["slow"].profile.note
    frame = result.operations()
    assert list(frame["operation"]) == ["linear", "relu"] and set(frame["level"]) == {"one"}
    assert frame["gflops_per_s"][0] == pytest.approx(512 / 2e-3 * 1e-9)
    assert numpy.isnan(frame["flops"][1])
    with pytest.raises(stratabench.StrataError, match="no level has a profile"):
        compared(asked).operations()


def test_a_result_is_saved_loaded_drawn_and_shown(asked):
    result = compared(asked)
    again = stratabench.load(result.save("kept.json"))
    assert again.json == result.json and again.verdict == result.verdict
    assert "fast" in [text.get_text() for text in result.plot().axes[0].get_yticklabels()]
    assert result.run in result._repr_html_() and "1 ms" in result._repr_html_()
    page = result.report("page.html")
    assert result.run in page.read_text(encoding="utf-8")
    with pytest.raises(stratabench.StrataError, match="no JSON"):
        Path("bad.json").write_text("{")
        stratabench.load("bad.json")
    with pytest.raises(stratabench.StrataError, match=r"'other/1' is not known"):
        Path("bad.json").write_text('{"schema": "other/1"}')
        stratabench.load("bad.json")


def test_html_of_a_result_has_no_markup_of_a_networks_own(asked):
    about = json.loads(json.dumps(compared(asked).json))
    about["cases"][0]["headline"]["sentence"] = "<script>alert(1)</script>"
    about["cases"][0]["rows"][1]["level"] = "<b onload=x>"
    shown = stratabench.Comparison(about)._repr_html_()
    assert "<script" not in shown and "<b onload" not in shown and "&lt;script" in shown


def test_a_sweep_is_a_document_of_tables(asked):
    Path("net.py").write_text(IMAGES, encoding="utf-8")
    swept = stratabench.sweep(
        "net.py:build",
        levels="slow,fast",
        batch=[1, 2],
        threads=1,
        budget_s=4.0,
        store=asked.store,
        progress=False,
    )
    assert isinstance(swept, stratabench.Document) and "fast" in swept.sentence.lower()
    assert set(swept.table("standings")["level"]) == {"slow", "fast"}
    assert swept.run and "strata sweep" in swept.title and swept.title in swept._repr_html_()
    with pytest.raises(stratabench.StrataError, match=r"allowed: .*standings"):
        swept.table("nothing")


def test_a_network_of_a_script_that_nobody_imports_runs_with_its_own_weights(asked):
    script = Path("script.py")
    script.write_text(
        """
import sys, torch, stratabench
import helper

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.scale = lambda x: helper.twice(x)

    def forward(self, x):
        return self.scale(self.layer(x))

net = Net()
r = stratabench.compare(net, torch.rand(2, 4), levels=["slow", "fast"], threads=1, restarts=1, budget_s=1.0, store="own.db")
print(r.case.id, [row.state for row in r.rows], r.json["cases"][0]["parameters"])
"""
    )
    Path("helper.py").write_text("def twice(x):\n    return 2 * x\n")
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Net:live/infer/b2/4" in done.stdout and "['measured', 'measured'] 15" in done.stdout


def test_an_object_is_kept_privately_once_under_what_it_holds(asked, monkeypatch, tmp_path):
    monkeypatch.setenv("STRATA_CACHE", str(tmp_path / "cache"))
    net = torch.nn.Linear(3, 2)
    first = live.keep(net, torch.ones(1, 3))
    elsewhere = [torch.ones(1, 3) for _ in range(3)]  # PyTorch pickles where a tensor lies
    assert {live.keep(copy.deepcopy(net), each) for each in elsewhere} == {
        first
    } and first.endswith("Linear.py:live")
    with torch.no_grad():
        net.bias += 1
    second = live.keep(net, torch.ones(1, 3))
    assert second != first
    net.register_forward_hook(lambda module, inputs, output: output + 1)
    assert live.keep(net, torch.ones(1, 3)) not in (first, second)
    folder = Path(first.rpartition(":")[0]).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and len(list(folder.parent.iterdir())) == 3
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(stratabench.StrataError, match="others can write"):
        live.keep(torch.nn.Linear(5, 5), torch.ones(1, 5))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.rand(1, 2, 3, 3), lambda x: x.to(memory_format=torch.channels_last)),
        (torch.zeros(2, dtype=torch.bfloat16), lambda x: x + 1),
        (torch.zeros(2, dtype=torch.complex128), lambda x: x + 1j),
        (torch.tensor(1.5), lambda x: x + 1),
        (torch.zeros(0, 3), lambda x: x.reshape(3, 0)),
    ],
    ids=["layout", "bfloat16", "complex", "number", "empty"],
)
def test_what_differs_in_anything_that_a_tensor_has_is_kept_apart(one, other):
    assert live._digest(one) == live._digest(copy.deepcopy(one)) != live._digest(other(one))


def test_a_compiled_network_and_a_function_are_taken_as_what_they_are(asked):
    example = torch.rand(2, 3)
    for model in (torch.compile(torch.nn.Linear(3, 2)), torch.compile(torch.sin), torch.sin):
        result = compared(asked, model, (example,))
        assert all(row.state == "measured" for row in result.rows), result.json


def test_a_hook_of_a_network_stays_beside_those_of_the_capture(asked):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3))
    net[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    kept = live.keep(net, torch.ones(1, 3))
    script = f"""
import sys
sys.path.insert(0, {str(ROOT / "sdk/python")!r})
from strata_sdk.models import build_model
net = build_model({kept!r}).module
before = net(*build_model({kept!r}).example_inputs.split(1)).tolist()
handle = net[0].register_forward_hook(lambda module, inputs, output: None)
handle.remove()
print(before == net(*build_model({kept!r}).example_inputs.split(1)).tolist(), len(net[0]._forward_hooks))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "True 1\n", done.stdout + done.stderr


@pytest.mark.parametrize(
    ("model", "example", "words"),
    [
        (torch.nn.Linear, None, r"Linear is a class.*Linear\(\.\.\.\)"),
        (torch.sin, None, "sin is a function, and what it takes is not known"),
        (torch.jit.script(torch.nn.ReLU()), None, "TorchScript"),
        (torch.nn.Linear(2, 2, device="meta"), torch.ones(1, 2), "`meta`: they have no values"),
        (42, None, "not of type int"),
        (MODEL, torch.ones(1, 2), "is a name"),
    ],
)
def test_a_model_that_is_none_is_refused_with_what_to_do(asked, model, example, words):
    with pytest.raises(stratabench.StrataError, match=words) as refused:
        compared(asked, model, example)
    assert refused.value.exit_code == 2


def test_a_training_of_an_object_says_that_it_needs_the_form_of_images(asked):
    with pytest.raises(stratabench.StrataError, match=r"example_inputs: a tensor \(N, ") as refused:
        stratabench.train(torch.nn.Linear(2, 2), "digits")
    assert refused.value.where == "example_inputs" and refused.value.exit_code == 2


def test_a_network_that_holds_what_belongs_to_this_process_is_refused(asked):
    net = torch.nn.Linear(2, 2)
    net.lock = threading.Lock()
    with pytest.raises(stratabench.StrataError, match=r"Linear cannot be carried.*locks"):
        compared(asked, net, torch.ones(1, 2))


def test_numbers_of_numpy_paths_and_devices_are_taken_as_what_they_say(asked):
    result = compared(
        asked,
        threads=numpy.int64(1),
        batch=numpy.array([1, 2]),
        budget_s=numpy.float32(1),
        device=torch.device("cpu"),
        data_dir=Path("sets"),
    )
    assert [case.id.split("/")[2] for case in result.cases] == ["b1", "b2"]
    with pytest.raises(stratabench.StrataError, match="<function compared") as refused:
        compared(asked, name=compared, restarts=compared)
    assert refused.value.where == "restarts"


def test_what_the_program_refuses_is_an_exception_with_its_facts(asked):
    with pytest.raises(stratabench.StrataError, match="allowed") as refused:
        compared(asked, threads=[0])
    assert refused.value.where == "threads" and refused.value.exit_code == 2
    with pytest.raises(stratabench.StrataError, match="fats"):
        compared(asked, levels=["slow", "fats"])
    with pytest.raises(stratabench.StrataError, match="no model is called"):
        compared(asked, "no_such_net")


def test_every_name_of_the_package_is_there_and_loaded_only_when_it_is_asked_for():
    assert set(stratabench._PLACES) == set(stratabench.__all__) <= set(dir(stratabench))
    assert all(getattr(stratabench, name) is not None for name in stratabench.__all__)
    with pytest.raises(AttributeError, match="no attribute 'compere'"):
        _ = stratabench.compere
    words = (
        "import sys, stratabench; print([n for n in sys.modules if n.startswith('stratabench')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "['stratabench']\n", done.stderr


def test_every_keyword_is_one_that_the_program_takes(asked):
    several = {"compare": options.CompareOptions, "sweep": options.SweepOptions}
    others = {
        "train": options.TrainOptions,
        "export": options.ExportOptions,
        "generate": options.GenerateOptions,
    }
    unknown = {}
    with engine.Engine(asked.store) as process:
        for verb, declared in (several | others).items():
            for name in declared.__annotations__:
                try:
                    process.ask({"verb": verb, "model": "x", name: {"no": "value"}})
                except stratabench.StrataError as error:
                    if error.where != name:
                        unknown[verb, name] = str(error)
    assert not unknown


def test_an_interrupt_keeps_what_was_measured(asked):
    # a shell starts what it runs in the background without it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    seen = []

    def stop(event):
        seen.append(event.text)
        if "measuring" in event.text and len([text for text in seen if "measuring" in text]) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(stratabench.Interrupted, match="of the store") as stopped:
        stratabench.compare(
            MODEL,
            levels=["slow", "fast"],
            store=asked.store,
            progress=stop,
            **(SHORT | {"budget_s": 300.0}),
        )
    signal.signal(signal.SIGINT, before)
    assert stopped.value.result.interrupted and stopped.value.result["fast"].time_ms > 0
    kept = stratabench.open_store(asked.store)
    assert kept.show(stopped.value.run).interrupted and kept.runs()[0]["run"] == stopped.value.run


def test_a_result_that_is_not_stored_has_no_report():
    about = {"schema": "strata.document/1", "title": "t", "summary": "s", "sections": []}
    with pytest.raises(stratabench.StrataError, match="nothing is stored of this result"):
        stratabench.Document(about | {"facts": []}).report()


def test_an_engine_that_is_killed_is_told_and_leaves_its_run(asked):
    with engine.Engine(asked.store) as process:

        def kill():
            time.sleep(3)
            process.process.kill()

        threading.Thread(target=kill).start()
        with pytest.raises(stratabench.StrataError, match="ended by signal 9"):
            process.ask(
                {"verb": "compare", "model": MODEL, "levels": ["slow", "fast"], "budget_s": 300}
            )


def test_a_program_that_cannot_start_says_why(asked, monkeypatch):
    monkeypatch.setenv("STRATA_PROGRAM", "/bin/false")
    with pytest.raises(stratabench.StrataError, match="ended with 1 before it had answered"):
        compared(asked)


TESTS = """
import pytest
from stratabench.pytest_plugin import CouldNotTell

OPTIONS = dict(threads=1, store="own.db")
TIMED = OPTIONS | dict(restarts=3, budget_s=2.0)
MODEL = {model!r}

def test_equal(strata):
    assert strata.assert_equal_work(MODEL, levels=["slow", "fast"], **OPTIONS).best

def test_wrong(strata):
    with pytest.raises(AssertionError, match="wrong is unequal"):
        strata.assert_equal_work(MODEL, levels=["slow", "wrong"], **OPTIONS)

def test_gone(strata):
    with pytest.raises(CouldNotTell, match="gone is"):
        strata.assert_equal_work(MODEL, levels=["slow", "gone"], **OPTIONS)
    strata.assert_equal_work(MODEL, levels=["slow", "gone"], allow_undecided=True, **OPTIONS)

def test_speed(strata):
    strata.assert_not_slower(MODEL, level="fast", than="slow", **TIMED)
    with pytest.raises(AssertionError, match="allowed: 1.05 times"):
        strata.assert_not_slower(MODEL, level="slow", than="fast", **TIMED)
    with pytest.raises(CouldNotTell, match="no interval|lies between"):
        strata.assert_not_slower(MODEL, level="fast", than="alike", by=0.0, **TIMED)
"""


def test_pytest_has_assertions_that_say_when_they_could_not_tell(asked):
    asked.level("wrong", rank=3, outputs={"scale": 1.5})
    asked.level("gone", rank=4, json_fields={"start": ["/nowhere/at/all"]})
    asked.level("alike", rank=5, **samples(1_000_000, seed=9))
    Path("test_own.py").write_text(TESTS.format(model=MODEL))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "stratabench.pytest_plugin", "test_own.py"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr

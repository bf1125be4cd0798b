# SPDX-License-Identifier: Apache-2.0
"""Makes the pack that the order on standard input asks for (src/engine/pack.hpp): laid beside its
place and moved there, so that all of it appears, or nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tarfile
import tempfile
from pathlib import Path

from stratabench.pack.facts import Refused, public
from stratabench.pack.lay import Order, Pack, compiles_there, lay

TARS = {".tar.gz": "w:gz", ".tar": "w:"}


def tar_ending(output: Path) -> str:
    """Empty: it is to be a folder."""
    return next((ending for ending in TARS if output.name.endswith(ending)), "")


def bytes_of(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())


def size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"


def make(order: Order) -> str:
    """Gives what is said of it."""
    output = Path(os.path.abspath(order.output))
    ending = tar_ending(output)
    name = output.name.removesuffix(ending)
    if not name:
        raise Refused(f"-o {order.output}: the file has no name", f"-o strata{ending}", 2)
    if os.path.lexists(output):
        raise Refused(
            f"-o {order.output}: there is one already", "another name, or remove it first", 2
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".strata-pack-", dir=output.parent) as part:
        folder = Path(part) / name
        folder.mkdir()
        pack = lay(folder, order)
        total, said = size(bytes_of(folder)), assumptions(pack, order)
        finished = folder
        if ending:
            finished = Path(part) / output.name
            with tarfile.open(finished, TARS[ending]) as tar:  # type: ignore[call-overload]
                tar.add(folder, name)
            total = f"{size(finished.stat().st_size)} ({total} unpacked)"
        finished.rename(output)
    levels = ", ".join(level.id for level in pack.levels)
    lines = [f"{order.output}: {total}", f"  levels: {levels}"]
    lines += [f"  left out: {level}: {why}" for level, why in pack.left_out.items()]
    lines += said
    if ending:
        lines.append(f"  unpack it there: tar -xf {shlex.quote(output.name)}")
    lines.append(f"  run it there: {shlex.quote(f'{name}/run')} compare MODEL")
    return "\n".join(lines)


def assumptions(pack: Pack, order: Order) -> list[str]:
    """What the other machine has to have; `run` looks for all of it."""
    facts, compiled = pack.facts, compiles_there(pack)
    torch = facts.torch or "(none)"
    lines = [
        f"glibc {pack.glibc} or newer",
        f"Python {facts.minor} with PyTorch {public(torch)}"
        + (f" for CUDA {facts.cuda}" if facts.cuda else ""),
    ]
    lacking = sorted(
        {need for level in pack.levels for need in level.needs} - {"torch", *pack.modules}
    )
    lines += [f"Python modules, of levels that need them: {', '.join(lacking)}"] if lacking else []
    if order.device == "cuda":
        lines.append("NVIDIA's driver and a GPU")
    if compiled:
        lines.append(f"a C++ compiler, for {', '.join(compiled)}")
    if pack.native:
        lines.append("a processor with the instructions of this one, for static")
    return ["  it needs there:", *(f"    {line}" for line in lines)]


def stop(number: int, frame: object) -> None:
    sys.exit(128 + number)  # the folder that is half made is removed on the way


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        print(make(Order.of(json.load(sys.stdin))))
    except Refused as refused:
        print(refused, file=sys.stderr)
        return refused.code
    except (OSError, shutil.Error) as error:
        print(f"error: the pack could not be written: {error}", file=sys.stderr)
        print("  try: is there space, and may you write there?", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

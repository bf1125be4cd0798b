# SPDX-License-Identifier: Apache-2.0
"""How strata starts every Python: `python start_python.py -m MODULE ...`, `-c CODE ...` or `FILE
...`, as without this file, but nothing of the current folder is imported.

Python 3.11 has PYTHONSAFEPATH for that, which its children obey, too; Python 3.10 puts the current
folder first. Runs on 3.10, and imports nothing before the path is clean.
"""

import os
import sys


def clean_path() -> None:
    """Takes away what Python itself put in front of the search path (the folder of this file), and
    whatever lies in the current folder.
    """
    if (
        not getattr(sys.flags, "safe_path", False)
        and sys.path
        and sys.path[0] == os.path.dirname(os.path.abspath(__file__))
    ):
        del sys.path[0]
    # an editable package's finder has an entry that is no path
    sys.path[:] = [
        entry for entry in sys.path if os.path.isabs(entry) or (entry and not os.path.exists(entry))
    ]


def protect_children() -> None:
    """For Python 3.10, where children know no PYTHONSAFEPATH: those of multiprocessing start
    isolated and get their parent's search path; PyTorch's compiler starts none.
    """
    import subprocess

    flags = subprocess._args_from_interpreter_flags
    subprocess._args_from_interpreter_flags = lambda: ["-I", *flags()]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


def run(words: list[str]) -> None:
    """Runs what `words` name as the main module; it ends as that does."""
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(
            compile(words[1], "<string>", "exec"),
            {"__name__": "__main__", "__builtins__": __builtins__},
        )
        return
    import runpy

    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    clean_path()
    if sys.version_info < (3, 11):
        protect_children()
    run(sys.argv[1:])

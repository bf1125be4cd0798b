# SPDX-License-Identifier: Apache-2.0
"""count_allocations.py LIBRARY WEIGHTS TIMES: runs a generated network with count_allocations.cpp
preloaded; prints {library: allocations} of all runs as JSON."""

import ctypes
import json
import sys


def main(library: str, weights: str, times: int) -> None:
    counter, network = ctypes.CDLL(None), ctypes.CDLL(library)
    network.model_create.restype = network.model_error.restype = ctypes.c_void_p
    for name in ("model_load", "model_run", "model_set_input"):
        getattr(network, name).argtypes = {
            "model_load": [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p],
            "model_run": [ctypes.c_void_p],
            "model_set_input": [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p],
        }[name]
    model = network.model_create(2)
    assert model and network.model_load(model, weights.encode(), None) == 0, ctypes.string_at(
        network.model_error()
    )
    pixels = (ctypes.c_float * (1 << 20))()
    network.model_set_input(model, 0, pixels)
    assert network.model_run(model) == 0  # OpenMP starts its threads
    counter.run_counted.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    counter.allocations_of.argtypes, counter.allocations_of.restype = (
        [ctypes.c_char_p],
        ctypes.c_long,
    )
    assert counter.run_counted(ctypes.cast(network.model_run, ctypes.c_void_p), model, times) == 0
    print(
        json.dumps(
            {
                name: counter.allocations_of(name.encode())
                for name in ("network.so", "libdnnl", "libgomp")
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

# SPDX-License-Identifier: Apache-2.0
"""A file system without locks, as one of a network may be: a library for LD_PRELOAD that refuses
every lock of a file below $NO_LOCKS_BELOW as such a system does."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = """
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int refuses(int file) {
  const char* below = getenv("NO_LOCKS_BELOW");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t bytes = readlink(link, path, sizeof path);
  if (!below || bytes < (ssize_t)strlen(below) || strncmp(path, below, strlen(below))) return 0;
  errno = ENOLCK;
  return 1;
}

int flock(int file, int how) {
  int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
  return !(how & LOCK_UN) && refuses(file) ? -1 : real(file, how);
}

#define FCNTL(NAME) \
  int NAME(int file, int command, ...) { \
    va_list rest; \
    va_start(rest, command); \
    void* argument = va_arg(rest, void*); \
    va_end(rest); \
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, #NAME); \
    const int locks = command == F_SETLK || command == F_SETLKW; \
    if (locks && ((struct flock*)argument)->l_type != F_UNLCK && refuses(file)) return -1; \
    return real(file, command, argument); \
  }
FCNTL(fcntl)
FCNTL(fcntl64)
"""


def below(folder: Path, scratch: Path) -> dict[str, str]:
    """Variables of a process for which nothing in `folder` can be locked."""
    library = scratch / "no_locks.so"
    command = ["g++", "-x", "c", "-", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, "-ldl"]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return {"LD_PRELOAD": str(library), "NO_LOCKS_BELOW": str(folder.resolve())}

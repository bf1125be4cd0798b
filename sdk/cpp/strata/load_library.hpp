// SPDX-License-Identifier: Apache-2.0
// A program that a level had compiled as a library, loaded. Never closed: oneDNN and OpenMP keep threads that run in
// it.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "strata/level.hpp"

namespace strata {

// What to do where the loader says `why`. `otherwise`: where it is not the C++ library.
inline std::string hint_of_loader(std::string_view why, const std::string& otherwise) {
  for (const char* symbols : {"GLIBCXX_", "CXXABI_"})
    if (why.find(symbols) != why.npos)
      return "that libstdc++.so.6 is older than the compiler's: take its folder out of LD_LIBRARY_PATH, or update it "
             "(of conda: conda install -c conda-forge 'libstdcxx-ng>=12')";
  return otherwise;
}

// Throws Failure; `hint`: what to do where the file is damaged.
inline void* load_library(const std::filesystem::path& file, const std::string& hint) {
  if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  const std::string why = ::dlerror();
  throw Failure("failed", "cannot load " + file.string() + ": " + why, hint_of_loader(why, hint));
}

}  // namespace strata

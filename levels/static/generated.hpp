// SPDX-License-Identifier: Apache-2.0
// A program that was generated, as a library: the functions of model.h in it.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "model.h"
#include "strata/load_library.hpp"

namespace strata::static_program {

// Throws std::runtime_error, load_library()'s among them.
struct Generated {
  explicit Generated(const std::filesystem::path& file)
      : handle(load_library(file, "remove its folder; it is made again")) {
    find(error, "model_error");
    find(library, "model_library");
    find(input_count, "model_input_count");
    find(output_count, "model_output_count");
    find(input, "model_input");
    find(output_tensor, "model_output_tensor");
    find(create, "model_create");
    find(destroy, "model_destroy");
    find(load, "model_load");
    find(set_input, "model_set_input");
    find(run, "model_run");
    find(output, "model_output");
    find(facts, "model_facts");
    find(call, "model_call");
    find(run_timed, "model_run_timed");
  }
  Generated(const Generated&) = delete;
  Generated& operator=(const Generated&) = delete;

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(handle, name));
    if (function == nullptr) throw std::runtime_error(std::string("the generated library lacks ") + name);
  }

  void* handle;
  decltype(model_error)* error;
  decltype(model_library)* library;
  decltype(model_input_count)* input_count;
  decltype(model_output_count)* output_count;
  decltype(model_input)* input;
  decltype(model_output_tensor)* output_tensor;
  decltype(model_create)* create;
  decltype(model_destroy)* destroy;
  decltype(model_load)* load;
  decltype(model_set_input)* set_input;
  decltype(model_run)* run;
  decltype(model_output)* output;
  decltype(model_facts)* facts;
  decltype(model_call)* call;
  decltype(model_run_timed)* run_timed;
};

}  // namespace strata::static_program

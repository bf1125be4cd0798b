// SPDX-License-Identifier: Apache-2.0
// Workers that are fakes (tests/fakes/fake_worker.py), each test in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/interrupt.hpp"
#include "worker/worker.hpp"

namespace strata::worker {

namespace fs = std::filesystem;

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "strata_worker_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    interrupted() = false;
    fs::remove_all(folder_);
  }

  Launch fake(const Json& script = Json::object()) const {
    Launch launch;
    launch.argv = {"python3", "-IS", std::string(STRATA_SOURCE_DIR) + "/tests/fakes/fake_worker.py", script.dump()};
    launch.log_path = (folder_ / "log").string();
    return launch;
  }
  std::unique_ptr<Worker> started(const Json& script = Json::object()) const {
    auto worker = Worker::start(fake(script));
    EXPECT_TRUE(worker.has_value()) << worker.error().what;
    return std::move(*worker);
  }

  fs::path folder_;
};

inline const Json hello = {{"api", 2}};

inline Json in_hello(const Json& trouble) {
  return {{"ops", {{"hello", trouble}}}};
}

}  // namespace strata::worker

// SPDX-License-Identifier: Apache-2.0
// A data set as a folder of image files, for verbs that take inputs from such a folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "common/result.hpp"
#include "data/reader.hpp"

namespace strata::data {

struct ImageFilesOptions : ReadOptions {
  std::size_t most = 0;                                 // images
  bool skip_bad = false;                                // leave out what cannot be read
  std::function<void(const std::string& line)> note{};  // may be empty
};

// The first training images of a set (or of a folder of images by class), in the order of its list, as files of their
// own size below `cache`: photographs as they are, others as PNG. Made once for each state of the set's files.
// Errors: the set is unknown or its files are not there; the cache cannot be written.
Result<std::filesystem::path> image_files(const std::string& name, ImageFilesOptions options,
                                          const std::filesystem::path& cache);

}  // namespace strata::data

// SPDX-License-Identifier: Apache-2.0
// The Dockerfile of a folder that strata writes: runtime/container/Dockerfile with what differs between folders.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace strata {

// The interpreter that the image's first stage builds with, in commands.
inline constexpr const char* kImagePython = "python";

struct ContainerImage {
  std::string verb;                                     // of strata, that writes the folder
  std::string python;                                   // of the environment that measured: "3.11.7"
  std::map<std::string, std::string> packages;          // that its library and its test come from, with their versions
  std::string build, test;                              // commands of the shell
  std::vector<std::string> program, arguments;          // words of what the image runs; its files lie in /network
  std::vector<std::string> tools = {}, libraries = {};  // Debian's packages beside the compiler, and at run time
  std::string choices = {};                             // lines before the build, with their line ends
};

// `text`: the template.
std::string dockerfile(const std::string& text, const ContainerImage& image);

}  // namespace strata

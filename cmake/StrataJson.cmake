# SPDX-License-Identifier: Apache-2.0
# strata::json: nlohmann's JSON without its literal ""_json. Being an inline function, that instantiates the whole parser in every file that includes the
# header, which costs g++ half a second each: a third of what most files of strata take.
# A header of another version, which has other text there, stays as it is.
include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/StrataLibraries.cmake")
add_library(strata_json INTERFACE)
add_library(strata::json ALIAS strata_json)
target_link_libraries(strata_json INTERFACE nlohmann_json::nlohmann_json)
find_path(STRATA_JSON_INCLUDE nlohmann/json.hpp)
if(STRATA_JSON_INCLUDE)
  file(READ "${STRATA_JSON_INCLUDE}/nlohmann/json.hpp" _header)
  string(REGEX REPLACE "(operator *\"\" *_json\\(const char\\* s, std::size_t n\\))[ \n]*{[^{}]*}" "\\1;" _header "${_header}")
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/json-whole/nlohmann")
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/json/nlohmann/json.hpp" CONTENT "${_header}" @ONLY)
  target_include_directories(strata_json SYSTEM BEFORE INTERFACE "${CMAKE_BINARY_DIR}/json")
endif()

# The whole header for a target that uses the literal, as cudnn-frontend does.
function(strata_whole_json target)
  if(STRATA_JSON_INCLUDE)
    file(COPY_FILE "${STRATA_JSON_INCLUDE}/nlohmann/json.hpp" "${CMAKE_BINARY_DIR}/json-whole/nlohmann/json.hpp" ONLY_IF_DIFFERENT)
    target_include_directories(${target} SYSTEM BEFORE PRIVATE "${CMAKE_BINARY_DIR}/json-whole")
  endif()
endfunction()

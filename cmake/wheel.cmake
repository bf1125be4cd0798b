# SPDX-License-Identifier: Apache-2.0
# What the Python package holds (python/stratabench/launcher.py says where it finds it): the driver, the files that it and levels read, and what a level is compiled
# of on the user's machine, for the PyTorch that is there. Levels that link no PyTorch come compiled (wheel_programs.cmake).
set(_package stratabench)
target_sources(strata PRIVATE src/common/older_glibc.cpp)
install(TARGETS strata RUNTIME DESTINATION "${_package}/bin")

foreach(_folder levels sdk runtime models suites examples cmake)
  install(DIRECTORY "${_folder}" DESTINATION "${_package}/tree" PATTERN __pycache__ EXCLUDE PATTERN ".*" EXCLUDE)
endforeach()
install(FILES LICENSE DESTINATION "${_package}/tree")
install(DIRECTORY src DESTINATION "${_package}/tree" FILES_MATCHING PATTERN "*.hpp" PATTERN "*.py" PATTERN "src/graph/recorded/*.json" PATTERN __pycache__ EXCLUDE)
foreach(_file common/outside common/safetensors core/optimiser_json)  # sdk/cpp compiles them
  get_filename_component(_folder "${_file}" DIRECTORY)
  install(FILES "src/${_file}.cpp" DESTINATION "${_package}/tree/src/${_folder}")
endforeach()

install(TARGETS strata_graph ARCHIVE DESTINATION "${_package}/libraries/lib")
install(FILES "${OPENSSL_CRYPTO_LIBRARY}" DESTINATION "${_package}/libraries/lib")
foreach(_header fmt/core.h nlohmann/json.hpp tl/expected.hpp openssl/evp.h)
  get_filename_component(_folder "${_header}" DIRECTORY)
  find_path(STRATA_HEADERS_${_folder} ${_header} REQUIRED)
  install(DIRECTORY "${STRATA_HEADERS_${_folder}}/${_folder}" DESTINATION "${_package}/libraries/include")
endforeach()
# Debian keeps what depends on the architecture in a folder of its own
find_path(STRATA_HEADERS_CONFIGURATION openssl/opensslconf.h REQUIRED)
install(FILES "${STRATA_HEADERS_CONFIGURATION}/openssl/opensslconf.h" "${STRATA_HEADERS_CONFIGURATION}/openssl/configuration.h" DESTINATION "${_package}/libraries/include/openssl")
include("${CMAKE_CURRENT_LIST_DIR}/wheel_programs.cmake")

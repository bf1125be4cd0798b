# SPDX-License-Identifier: Apache-2.0
# What every level links: fmt, OpenSSL's hashes, nlohmann's JSON, tl::expected.
# In:  STRATA_LIBRARIES  folder with include/ and lib/ that brings them, as a wheel has it (default: those of the system)
# Out: fmt::fmt, fmt::fmt-header-only, OpenSSL::Crypto, nlohmann_json::nlohmann_json
include_guard(GLOBAL)

set(STRATA_LIBRARIES "" CACHE PATH "folder with include/ and lib/ of what levels link; empty: the system's")
if(NOT STRATA_LIBRARIES)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(OpenSSL REQUIRED COMPONENTS Crypto)
  return()
endif()
foreach(name fmt::fmt fmt::fmt-header-only nlohmann_json::nlohmann_json OpenSSL::Crypto)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${name} SYSTEM INTERFACE "${STRATA_LIBRARIES}/include")
endforeach()
foreach(name fmt::fmt fmt::fmt-header-only)
  target_compile_definitions(${name} INTERFACE FMT_HEADER_ONLY=1)
endforeach()
target_link_libraries(OpenSSL::Crypto INTERFACE "${STRATA_LIBRARIES}/lib/libcrypto.a" ${CMAKE_DL_LIBS})
list(PREPEND CMAKE_INCLUDE_PATH "${STRATA_LIBRARIES}/include")  # for StrataJson, which looks for the header

# SPDX-License-Identifier: Apache-2.0
# strata::onednn: oneDNN from the packages onednn-cpu-gomp and onednn-devel-cpu-gomp of strata's own environment,
# whichever Python the other levels are built for.
# In:  STRATA_ONEDNN_ROOT  folder with include/oneapi/dnnl and lib/libdnnl.so (default: <strata>/.venv)
# Out: the target and STRATA_ONEDNN_VERSION, if there is a oneDNN 3; else STRATA_ONEDNN_MISSING says what is missing, STRATA_ONEDNN_ADVICE what to do
include_guard(DIRECTORY) # each level reads the variables, in a scope of its own

get_filename_component(_default "${CMAKE_CURRENT_LIST_DIR}/../.venv" ABSOLUTE)
set(STRATA_ONEDNN_ROOT "${_default}" CACHE PATH "folder with include/oneapi/dnnl and lib/libdnnl.so")
set(STRATA_ONEDNN_MISSING "")
set(STRATA_ONEDNN_ADVICE "install onednn-cpu-gomp and onednn-devel-cpu-gomp there (requirements/base.txt pins them; x86-64 only), then run the same command again")
set(_header "${STRATA_ONEDNN_ROOT}/include/oneapi/dnnl/dnnl_version.h")
set(_library "${STRATA_ONEDNN_ROOT}/lib/libdnnl.so")
find_package(OpenMP QUIET COMPONENTS CXX)
if(NOT EXISTS "${_header}" OR NOT EXISTS "${_library}")
  set(STRATA_ONEDNN_MISSING "oneDNN is not in ${STRATA_ONEDNN_ROOT} (include/oneapi/dnnl, lib/libdnnl.so)")
elseif(NOT OpenMP_CXX_FOUND)
  set(STRATA_ONEDNN_MISSING "the compiler has no OpenMP, which this oneDNN runs on")
  set(STRATA_ONEDNN_ADVICE "install the compiler's OpenMP (g++ brings libgomp), then run the same command again")
else()
  file(STRINGS "${_header}" _version REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]+" "." _version "${_version}")
  string(REGEX REPLACE "^\\.|\\.$" "" _version "${_version}")
  if(_version VERSION_LESS 3 OR _version VERSION_GREATER_EQUAL 4)
    set(STRATA_ONEDNN_MISSING "oneDNN ${_version} in ${STRATA_ONEDNN_ROOT}; version 3 is needed")
  endif()
endif()

set(STRATA_ONEDNN_VERSION "${_version}")
if(STRATA_ONEDNN_MISSING)
  message(STATUS "${STRATA_ONEDNN_MISSING}: ${STRATA_ONEDNN_ADVICE}")
elseif(NOT TARGET strata_onednn)
  add_library(strata_onednn INTERFACE)
  add_library(strata::onednn ALIAS strata_onednn)
  target_include_directories(strata_onednn SYSTEM INTERFACE "${STRATA_ONEDNN_ROOT}/include")
  if(NOT STRATA_PORTABLE)
    target_link_options(strata_onednn INTERFACE "LINKER:-rpath,${STRATA_ONEDNN_ROOT}/lib")
  endif()
  # OpenMP after it: the library's libgomp.so.1 is then the system's, one for both
  target_link_libraries(strata_onednn INTERFACE "${_library}" OpenMP::OpenMP_CXX)
  message(STATUS "oneDNN ${_version} at ${STRATA_ONEDNN_ROOT}")
endif()

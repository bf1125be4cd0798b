# SPDX-License-Identifier: Apache-2.0
# The programs that a Python package brings compiled: those of levels that link no PyTorch (python/stratabench/shipped.py copies them on the user's machine). A build of
# its own, with the options that levels have there, not the driver's.
# In:  STRATA_ONEDNN_ROOT  as StrataOneDNN.cmake has it (default: where the packages of Python_EXECUTABLE lie)
include(ExternalProject)

set(_levels null_cpp)
set(_programs level_null_cpp)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")  # oneDNN's packages have no others
  list(APPEND _levels onednn static)
  list(APPEND _programs level_onednn level_static strata_generate)
  if(NOT STRATA_ONEDNN_ROOT)
    set(_find "import importlib.metadata as m; print(next(f.locate().resolve().parents[1] for f in m.files('onednn-cpu-gomp') if f.name == 'libdnnl.so'))")
    execute_process(COMMAND "${Python_EXECUTABLE}" -c "${_find}" OUTPUT_VARIABLE STRATA_ONEDNN_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT EXISTS "${STRATA_ONEDNN_ROOT}/include/oneapi/dnnl/dnnl.hpp")
    message(FATAL_ERROR "oneDNN is not in '${STRATA_ONEDNN_ROOT}', where ${Python_EXECUTABLE} has its packages (include/oneapi/dnnl, lib/libdnnl.so): install onednn-cpu-gomp and onednn-devel-cpu-gomp there, or say where it is: -DSTRATA_ONEDNN_ROOT=FOLDER")
  endif()
endif()

# what they are compiled with, as the package's `libraries` has it
set(_libraries "${CMAKE_BINARY_DIR}/libraries")
file(MAKE_DIRECTORY "${_libraries}/include" "${_libraries}/lib")
foreach(_folder fmt nlohmann tl openssl)
  file(CREATE_LINK "${STRATA_HEADERS_${_folder}}/${_folder}" "${_libraries}/include/${_folder}" SYMBOLIC)
endforeach()
file(CREATE_LINK "${OPENSSL_CRYPTO_LIBRARY}" "${_libraries}/lib/libcrypto.a" SYMBOLIC)

set(_folder "${CMAKE_BINARY_DIR}/programs")
list(JOIN _levels "|" _levels)
ExternalProject_Add(strata_programs
  SOURCE_DIR "${CMAKE_SOURCE_DIR}/levels" BINARY_DIR "${_folder}" PREFIX "${CMAKE_BINARY_DIR}/programs-state"
  DEPENDS strata_graph strata  # after the driver: each build has all processors
  LIST_SEPARATOR |
  CMAKE_ARGS "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" -DCMAKE_BUILD_TYPE=Release -DSTRATA_WITH_TORCH=OFF
    -DSTRATA_PORTABLE=ON "-DSTRATA_LEVELS=${_levels}" "-DSTRATA_DRIVER=${CMAKE_BINARY_DIR}" "-DSTRATA_LIBRARIES=${_libraries}" "-DSTRATA_ONEDNN_ROOT=${STRATA_ONEDNN_ROOT}"
  BUILD_COMMAND "${CMAKE_COMMAND}" --build "${_folder}" --target ${_programs}
  BUILD_ALWAYS ON INSTALL_COMMAND "")
foreach(_program ${_programs})
  install(PROGRAMS "${_folder}/${_program}" DESTINATION "${_package}/programs")
  install(FILES "${_folder}/${_program}.built_with" DESTINATION "${_package}/programs" OPTIONAL)
endforeach()

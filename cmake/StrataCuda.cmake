# SPDX-License-Identifier: Apache-2.0
# What strata's own CUDA code is built with; no device is needed for it. nvcc and headers come from a toolkit, the
# libraries from the wheels of the PyTorch in use (so that a process never meets two of them), else from the toolkit.
# In:  STRATA_PYTHON          interpreter whose wheels are used
#      STRATA_CUDNN_FRONTEND  folder with cudnn_frontend.h (default: where set-up puts it, <strata>/.venv/cudnn-frontend)
# Out: strata::cuda (headers, cudart), strata::cudnn (cuDNN with its frontend, cuBLAS), strata_kernels (kit_cuda/kernels),
#      the language CUDA; else STRATA_CUDA_MISSING says what is missing, STRATA_CUDA_ADVICE what to do
include_guard(DIRECTORY) # each level reads the variables, and enables the language, in a scope of its own

get_filename_component(_strata "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(STRATA_CUDNN_FRONTEND "${_strata}/.venv/cudnn-frontend/include" CACHE PATH "folder with cudnn_frontend.h")
set(STRATA_PYTHON "python3" CACHE STRING "python interpreter that has torch")
set(STRATA_CUDA_MISSING "")
set(STRATA_CUDA_ADVICE "install NVIDIA's CUDA toolkit (or set CUDA_HOME), then run the same command again")

find_program(STRATA_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin)
if(STRATA_NVCC)
  file(REAL_PATH "${STRATA_NVCC}" _nvcc)
  get_filename_component(_toolkit "${_nvcc}/../.." ABSOLUTE)
  # nvcc needs crt/, which the wheels lack
  find_path(STRATA_CUDA_TOOLKIT_INCLUDE crt/host_defines.h HINTS "${_toolkit}/include" "${_toolkit}/targets/x86_64-linux/include" NO_DEFAULT_PATH)
endif()
if(NOT DEFINED STRATA_NVIDIA_WHEELS)
  execute_process(COMMAND "${STRATA_PYTHON}" -c "import sys; sys.path[:] = filter(None, sys.path); import importlib.util as u; s = u.find_spec('nvidia'); print(s.submodule_search_locations[0] if s else '')"
                  OUTPUT_VARIABLE _wheels OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(STRATA_NVIDIA_WHEELS "${_wheels}" CACHE PATH "folder of NVIDIA's wheels")
endif()

# _strata_cuda_library(VARIABLE NAME): by its soname, since wheels hold no unversioned names.
function(_strata_cuda_library variable name)
  file(GLOB _found "${STRATA_NVIDIA_WHEELS}/*/lib/lib${name}.so.*")
  if(NOT _found)
    file(GLOB _found "${_toolkit}/lib64/lib${name}.so.[0-9]*" "${_toolkit}/targets/*/lib/lib${name}.so.[0-9]*" "/usr/lib/*/lib${name}.so.[0-9]*")
  endif()
  list(APPEND _found "")
  list(GET _found 0 _first)
  set(${variable} "${_first}" CACHE FILEPATH "lib${name}")
endfunction()
foreach(_name cudart cudnn cublas cublasLt nvrtc)
  string(TOUPPER "STRATA_CUDA_LIB_${_name}" _variable)
  _strata_cuda_library(${_variable} ${_name})
  if(NOT ${_variable})
    unset(${_variable} CACHE) # looked for again next time
    set(STRATA_CUDA_MISSING "lib${_name} is neither among ${STRATA_PYTHON}'s wheels nor in a CUDA toolkit")
    set(STRATA_CUDA_ADVICE "install a PyTorch that was built with CUDA, or the library, then run the same command again")
  endif()
endforeach()
find_path(STRATA_CUDNN_WHEEL_INCLUDE cudnn_version.h HINTS "${STRATA_NVIDIA_WHEELS}/cudnn/include" "${STRATA_CUDA_TOOLKIT_INCLUDE}" NO_DEFAULT_PATH)
if(NOT STRATA_NVCC)
  set(STRATA_CUDA_MISSING "there is no CUDA compiler (nvcc)")
elseif(NOT STRATA_CUDA_TOOLKIT_INCLUDE)
  set(STRATA_CUDA_MISSING "the CUDA toolkit of ${STRATA_NVCC} has no headers (crt/host_defines.h)")
elseif(NOT STRATA_CUDA_MISSING AND NOT STRATA_CUDNN_WHEEL_INCLUDE)
  set(STRATA_CUDA_MISSING "cuDNN's headers (cudnn_version.h) are neither among ${STRATA_PYTHON}'s wheels nor in the CUDA toolkit")
  set(STRATA_CUDA_ADVICE "install the package nvidia-cudnn-cu13 there, or cuDNN, then run the same command again")
elseif(NOT STRATA_CUDA_MISSING AND NOT EXISTS "${STRATA_CUDNN_FRONTEND}/cudnn_frontend.h")
  set(STRATA_CUDA_MISSING "cudnn-frontend's headers are not in ${STRATA_CUDNN_FRONTEND}")
  set(STRATA_CUDA_ADVICE "set-up puts them there where there is nvcc (requirements/cuda.txt pins them); run the same command again")
endif()
# kernels are compiled with the toolkit's headers, and run with the wheels' cudart
if(NOT STRATA_CUDA_MISSING)
  file(STRINGS "${STRATA_CUDA_TOOLKIT_INCLUDE}/cuda_runtime_api.h" _version REGEX "define CUDART_VERSION ")
  string(REGEX REPLACE ".* ([0-9]+)[0-9][0-9][0-9].*" "\\1" _major "${_version}")
  if(NOT STRATA_CUDA_LIB_CUDART MATCHES "\\.so\\.${_major}($|\\.)")
    set(STRATA_CUDA_MISSING "the CUDA toolkit of ${STRATA_NVCC} is version ${_major}, ${STRATA_CUDA_LIB_CUDART} is of another")
    set(STRATA_CUDA_ADVICE "install the toolkit that this PyTorch was built with, then run the same command again")
  endif()
endif()

if(STRATA_CUDA_MISSING)
  message(STATUS "${STRATA_CUDA_MISSING}: ${STRATA_CUDA_ADVICE}")
else()
  set(CMAKE_CUDA_COMPILER "${STRATA_NVCC}")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES) # before the language: CMake 3.25's own default is one that CUDA 13 dropped
    set(CMAKE_CUDA_ARCHITECTURES 90-real 75-virtual)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 knows no C++20 of nvcc's
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None) # the wheels' cudart, once in a process
  if(NOT TARGET strata_cuda)
    add_library(strata_cuda INTERFACE)
    add_library(strata::cuda ALIAS strata_cuda)
    target_include_directories(strata_cuda SYSTEM INTERFACE "${STRATA_CUDA_TOOLKIT_INCLUDE}")
    target_link_libraries(strata_cuda INTERFACE "${STRATA_CUDA_LIB_CUDART}")
    get_filename_component(_lib "${STRATA_CUDA_LIB_CUDART}" DIRECTORY)
    target_link_options(strata_cuda INTERFACE "LINKER:-rpath,${_lib}")

    add_library(strata_cudnn INTERFACE)
    add_library(strata::cudnn ALIAS strata_cudnn)
    target_include_directories(strata_cudnn SYSTEM INTERFACE "${STRATA_CUDNN_FRONTEND}" "${STRATA_CUDNN_WHEEL_INCLUDE}")
    # the frontend calls NVRTC in an inline function
    target_link_libraries(strata_cudnn INTERFACE strata_cuda "${STRATA_CUDA_LIB_CUDNN}" "${STRATA_CUDA_LIB_CUBLAS}" "${STRATA_CUDA_LIB_CUBLASLT}" "${STRATA_CUDA_LIB_NVRTC}" ${CMAKE_DL_LIBS})
    foreach(_library CUDNN CUBLAS NVRTC)
      get_filename_component(_lib "${STRATA_CUDA_LIB_${_library}}" DIRECTORY)
      target_link_options(strata_cudnn INTERFACE "LINKER:-rpath,${_lib}" "LINKER:-rpath-link,${_lib}")
    endforeach()

    file(GLOB _kernels CONFIGURE_DEPENDS "${_strata}/runtime/kit_cuda/kernels/*.cu")
    add_library(strata_kernels STATIC EXCLUDE_FROM_ALL ${_kernels})
    set_target_properties(strata_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(strata_kernels PUBLIC "${_strata}/runtime")
    target_compile_options(strata_kernels PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda>)
    target_link_libraries(strata_kernels PUBLIC strata_cuda)
    message(STATUS "CUDA ${_major} of ${STRATA_NVCC}; ${STRATA_CUDA_LIB_CUDART}; ${STRATA_CUDA_LIB_CUDNN}; frontend ${STRATA_CUDNN_FRONTEND}")
  endif()
endif()

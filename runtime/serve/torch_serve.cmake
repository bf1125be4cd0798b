# Builds serve against an installed PyTorch: cmake -S . -B build -DSTRATA_PYTHON=/path/to/python, whose PyTorch it then links. No CUDA toolkit is needed for a network on the CPU.
cmake_minimum_required(VERSION 3.25)
project(serve LANGUAGES CXX)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

include("${CMAKE_CURRENT_SOURCE_DIR}/StrataTorch.cmake")
file(STRINGS case.hpp on_cuda REGEX "kDevice = \"cuda")
add_executable(serve serve.cpp)
target_link_libraries(serve PRIVATE $<IF:$<BOOL:${on_cuda}>,strata::torch_cuda,strata::torch>)
file(STRINGS serve.cpp package REGEX "aoti_package")
if(package) # its own library needs libtorch.so, which is found only if the program holds it already
  target_link_libraries(serve PRIVATE "-Wl,--push-state,--no-as-needed,${STRATA_TORCH_DIR}/lib/libtorch.so,--pop-state")
endif()

include("${CMAKE_CURRENT_SOURCE_DIR}/deploy.cmake")
deploy(serve)
deploy_artefact()

enable_testing()
add_test(NAME equal_work COMMAND "${STRATA_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/check.py" $<TARGET_FILE:serve>)

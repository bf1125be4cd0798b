# cmake --install build --prefix FOLDER puts into FOLDER what a program needs to run, which can then be moved and copied.

# deploy(PROGRAM [LIBRARY ...]): the program with all libraries that are not the system's. LIBRARY: a file that is opened while the program runs and that no other file names.
function(deploy program)
  if(TARGET strata_torch) # whose place CMake knows and takes out again
    get_target_property(options strata_torch INTERFACE_LINK_OPTIONS)
    list(FILTER options EXCLUDE REGEX "-rpath,")
    set_target_properties(strata_torch PROPERTIES INTERFACE_LINK_OPTIONS "${options}")
  endif()
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${program} RUNTIME_DEPENDENCY_SET needed RUNTIME DESTINATION .)
  foreach(library ${ARGN})
    get_filename_component(name "${library}" NAME)
    add_library(${name} MODULE IMPORTED)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${library}")
    install(IMPORTED_RUNTIME_ARTIFACTS ${name} RUNTIME_DEPENDENCY_SET needed LIBRARY DESTINATION .)
  endforeach()
  install(RUNTIME_DEPENDENCY_SET needed
          PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so"
          POST_EXCLUDE_REGEXES "^(/usr)?/lib(64)?(/[^/]*-linux-[^/]*)?/[^/]*$"
          LIBRARY DESTINATION .)
endfunction()

# The files of the artefact and the inputs of the test.
function(deploy_artefact)
  file(READ certificate.json certificate)
  string(JSON count LENGTH "${certificate}" files)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON name MEMBER "${certificate}" files ${i})
    install(FILES "${name}" DESTINATION .)
  endforeach()
  install(FILES test/inputs.safetensors DESTINATION test)
endfunction()

# Writes the style sheet and the script beside it into one C++ source of strata_core, so that the program does not depend on where its
# sources lie. Include it after add_library(strata_core ...); the source is made anew when an asset changes.
set(document_css "${CMAKE_CURRENT_LIST_DIR}/document.css")
set(document_js "${CMAKE_CURRENT_LIST_DIR}/document.js")
file(READ "${document_css}" STRATA_DOCUMENT_CSS)
file(READ "${document_js}" STRATA_DOCUMENT_JS)
configure_file("${CMAKE_CURRENT_LIST_DIR}/assets.cpp.in" "${CMAKE_CURRENT_BINARY_DIR}/report_assets.cpp" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${document_css}" "${document_js}")
target_sources(strata_core PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/report_assets.cpp")

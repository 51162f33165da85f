# imgui::imgui (Dear ImGui with docking, ImPlot, the GLFW and OpenGL 3 backends) and imgui::test_engine, from the sources that
# cmake/provision.sh unpacks into the cache. Compiled once, with the Test Engine's hooks: a program links either
# imgui::test_engine or viz/app/no_test_engine.cpp, whose hooks do nothing. Sets RANKLAB_VIZ_LACKS to what is missing.
set(RANKLAB_VIZ_LACKS "")
include(${CMAKE_CURRENT_LIST_DIR}/DownloadCache.cmake)
set(RANKLAB_IMGUI_ROOT "${RANKLAB_CACHE}/imgui-1.92.801" CACHE PATH "Folder with imgui, implot and imgui_test_engine of imgui-bundle 1.92.801")
if(NOT EXISTS ${RANKLAB_IMGUI_ROOT}/imgui/imgui/imgui.h)
  list(APPEND RANKLAB_VIZ_LACKS "Dear ImGui in ${RANKLAB_IMGUI_ROOT}")
endif()
find_package(glfw3 QUIET)
if(NOT TARGET glfw)
  list(APPEND RANKLAB_VIZ_LACKS libglfw3-dev)
endif()
find_package(PNG QUIET)
if(NOT PNG_FOUND)
  list(APPEND RANKLAB_VIZ_LACKS libpng-dev)
endif()
if(RANKLAB_VIZ_LACKS)
  return()
endif()

set(_imgui ${RANKLAB_IMGUI_ROOT}/imgui/imgui)
set(_implot ${RANKLAB_IMGUI_ROOT}/implot/implot)
set(_engine ${RANKLAB_IMGUI_ROOT}/imgui_test_engine/imgui_test_engine/imgui_test_engine)

# This imgui carries imgui-bundle's patch, hence imgui_stacklayout.cpp.
add_library(ranklab_imgui STATIC
            ${_imgui}/imgui.cpp ${_imgui}/imgui_draw.cpp ${_imgui}/imgui_tables.cpp ${_imgui}/imgui_widgets.cpp
            ${_imgui}/imgui_stacklayout.cpp ${_imgui}/misc/cpp/imgui_stdlib.cpp
            ${_imgui}/backends/imgui_impl_glfw.cpp ${_imgui}/backends/imgui_impl_opengl3.cpp
            ${_implot}/implot.cpp ${_implot}/implot_items.cpp)
add_library(imgui::imgui ALIAS ranklab_imgui)
target_include_directories(ranklab_imgui SYSTEM PUBLIC ${_imgui} ${_imgui}/backends ${_imgui}/misc/cpp ${_implot} ${_engine})
target_include_directories(ranklab_imgui PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_definitions(ranklab_imgui PUBLIC IMGUI_USER_CONFIG="viz/app/imgui_config.h" IMGUI_ENABLE_TEST_ENGINE
                                                IMGUI_DISABLE_DEMO_WINDOWS)
# What panels plot: ImPlot is otherwise compiled for ten types, which takes a tenth of the whole build.
set_source_files_properties(${_implot}/implot_items.cpp PROPERTIES COMPILE_DEFINITIONS "IMPLOT_CUSTOM_NUMERIC_TYPES=(float)(double)"
                            COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
# Third-party sources: no warnings, and no sanitizer (implot_items.cpp takes minutes and gigabytes with one).
set(_third_party -w)
if(RANKLAB_SANITIZER)
  list(APPEND _third_party -fno-sanitize=all)
endif()
target_compile_options(ranklab_imgui PRIVATE ${_third_party})
target_link_libraries(ranklab_imgui PUBLIC glfw ${CMAKE_DL_LIBS})

file(GLOB _engine_sources ${_engine}/*.cpp)
add_library(ranklab_imgui_test_engine STATIC EXCLUDE_FROM_ALL ${_engine_sources})
add_library(imgui::test_engine ALIAS ranklab_imgui_test_engine)
target_compile_options(ranklab_imgui_test_engine PRIVATE ${_third_party} $<$<CONFIG:Release>:-O1>)
target_compile_definitions(ranklab_imgui_test_engine PUBLIC IMGUI_TEST_ENGINE_ENABLE_COROUTINE_STDTHREAD_IMPL=1)
target_link_libraries(ranklab_imgui_test_engine PUBLIC ranklab_imgui Threads::Threads)

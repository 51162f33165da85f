# install + export: find_package(ranklab) gives ranklab::core (all of core) and each folder's target (ranklab::comm,
# ranklab::cpu_sim ...), headers as in the source tree (#include "core/comm/communicator.h"), and the ranklab program.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The folders' libraries; those of tests/ stay here.
get_property(all_libraries GLOBAL PROPERTY RANKLAB_LIBRARIES)
set(installed_libraries "")
set(core_libraries "")
foreach(library ${all_libraries})
  get_target_property(folder ${library} SOURCE_DIR)
  if(folder MATCHES "^${PROJECT_SOURCE_DIR}/(core/|backends)")
    list(APPEND installed_libraries ${library})
  endif()
  if(folder MATCHES "^${PROJECT_SOURCE_DIR}/core/")
    list(APPEND core_libraries ${library})
  endif()
endforeach()
add_library(ranklab_core INTERFACE)
add_library(ranklab::core ALIAS ranklab_core)
target_link_libraries(ranklab_core INTERFACE ${core_libraries})

# A consumer chooses its own warnings; it needs our language level and NDEBUG (RanklabCompiler).
get_target_property(warnings ranklab_compiler INTERFACE_COMPILE_OPTIONS)
set_property(TARGET ranklab_compiler PROPERTY INTERFACE_COMPILE_OPTIONS "$<BUILD_INTERFACE:${warnings}>")
target_compile_features(ranklab_compiler INTERFACE cxx_std_20)
foreach(part core compiler torch gloo)
  set_target_properties(ranklab_${part} PROPERTIES EXPORT_NAME ${part})
endforeach()

install(TARGETS ${installed_libraries} ranklab_core ranklab_compiler ranklab_torch ranklab_gloo
        EXPORT ranklab_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY core backends DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ranklab
        FILES_MATCHING PATTERN "*.h" PATTERN profiles EXCLUDE)
# Linked with the run path of the installed file at once. To be able to replace the path at installation, CMake would end
# the one in the build folder with a colon, which the loader reads as the current folder: a libgloo.so.0 that lies where
# the user happens to be would be loaded and run.
foreach(target ranklab ranklab_training ranklab_viz_module ranklab_bench_module ranklab_lessons_module ranklab_cuda)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endforeach()
if(TARGET ranklab)
  install(TARGETS ranklab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS ranklab_training ranklab_viz_module ranklab_bench_module ranklab_lessons_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # The program finds them beside itself, in share/ (lessons/lesson_list.h).
  install(DIRECTORY lessons/ DESTINATION share/ranklab/lessons
          FILES_MATCHING PATTERN "*.md" PATTERN "exercise.h" PATTERN "exercise.cpp" PATTERN "solution.cpp" PATTERN "*_api.h")
endif()
if(TARGET ranklab_cuda)
  install(TARGETS ranklab_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

get_filename_component(GLOO_LIBRARY_FOLDER ${GLOO_LIBRARY} DIRECTORY)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ranklab)
install(EXPORT ranklab_targets NAMESPACE ranklab:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ranklab-config.cmake.in
                              ${PROJECT_BINARY_DIR}/ranklab-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ranklab-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ranklab-config.cmake ${PROJECT_BINARY_DIR}/ranklab-config-version.cmake
        DESTINATION ${package_folder})

# A small program outside this tree, built against the installed files.
if(RANKLAB_BUILD_TESTS AND NOT RANKLAB_SANITIZER)
  add_test(NAME install_test
           COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR}
                   -DCONSUMER=${PROJECT_SOURCE_DIR}/tests/examples/consumer -DCOMPILER=${CMAKE_CXX_COMPILER}
                   -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_LIST_DIR}/InstallTest.cmake)
  set_tests_properties(install_test PROPERTIES TIMEOUT 900)
endif()

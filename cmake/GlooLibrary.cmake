# gloo::lib: Debian/Ubuntu's libgloo. libtorch_cpu.so exports its own, newer gloo:: symbols (309 shared names), so libgloo
# must come before it in link order: executables link gloo::lib first (a test asserts it with dladdr).
find_path(GLOO_INCLUDE_DIR gloo/allreduce.h REQUIRED)
find_library(GLOO_LIBRARY gloo REQUIRED)
add_library(gloo_shared SHARED IMPORTED GLOBAL)
set_target_properties(gloo_shared PROPERTIES IMPORTED_LOCATION ${GLOO_LIBRARY})
add_library(ranklab_gloo INTERFACE)
add_library(gloo::lib ALIAS ranklab_gloo)
target_include_directories(ranklab_gloo SYSTEM INTERFACE $<BUILD_INTERFACE:${GLOO_INCLUDE_DIR}>)
target_link_libraries(ranklab_gloo INTERFACE $<BUILD_INTERFACE:gloo_shared>)
# Before every other library on the command line, and kept although nothing before it refers to it.
target_link_options(ranklab_gloo INTERFACE $<BUILD_INTERFACE:LINKER:--push-state,--no-as-needed,${GLOO_LIBRARY},--pop-state>)

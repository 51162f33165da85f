# cmake -DBUILD=... -DCONSUMER=... -P InstallTest.cmake: installs BUILD into a folder of its own, then configures,
# builds and runs CONSUMER against it.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit code ${code}\n${output}")
  endif()
  set(last_output "${output}" PARENT_SCOPE)
endfunction()

set(work ${BUILD}/install_test)
file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${work}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
if(NOT last_output MATCHES "sum 3")
  message(FATAL_ERROR "the consumer printed: ${last_output}")
endif()
# The installed program finds the installed lessons.
set(lessons ${work}/prefix/share/ranklab/lessons)
run(${CMAKE_COMMAND} -E env RANKLAB_STATE_DIR=${work}/state ${work}/prefix/bin/ranklab lesson check 0
    --file ${lessons}/00_what_is_a_rank/solution.cpp)
file(REMOVE_RECURSE ${work})

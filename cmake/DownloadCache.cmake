# RANKLAB_CACHE: the folder into which cmake/provision.sh unpacks what it downloads.
include_guard()
execute_process(COMMAND bash -c ". \"$0\" && printf %s \"$cache\"" ${CMAKE_CURRENT_LIST_DIR}/home.sh
                OUTPUT_VARIABLE RANKLAB_CACHE ERROR_QUIET)
if(NOT RANKLAB_CACHE)
  set(RANKLAB_CACHE "no-home-directory/ranklab")  # nothing is found there; messages name it
endif()

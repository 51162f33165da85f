# RANKLAB_CACHE: the folder into which cmake/provision.sh unpacks what it downloads, as cmake/home.sh finds it.
include_guard()
set(_home "$ENV{HOME}")
if("${_home}" STREQUAL "" AND "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  execute_process(COMMAND sh -c "getent passwd \"$(id -u)\" | cut -d: -f6" OUTPUT_VARIABLE _home OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(RANKLAB_CACHE "$ENV{XDG_CACHE_HOME}/ranklab")
elseif(_home)
  set(RANKLAB_CACHE "${_home}/.cache/ranklab")
else()
  set(RANKLAB_CACHE "no-home-directory/ranklab")  # nothing is found there; messages name it
endif()

# install + export: find_package(ranklab) gives ranklab::core and every folder's target.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

"""Makes FOLDER/tree, a checkout with the real driver and a program of few lines, and FOLDER/index, the packages that it pins.

So the tests of ./ranklab itself take seconds: what is built is small, what is downloaded is a few MB, and no network is needed.
"""
import hashlib
import os
import random
import shutil
import sys
import tarfile
import zipfile

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
include(cmake/LibTorch.cmake)
function(part name kind)
  foreach(number RANGE 1 6)
    set(header cstddef)
    if(number GREATER 4)  # these take long enough for a build to be interrupted
      set(header iostream)
    endif()
    file(WRITE ${CMAKE_BINARY_DIR}/${name}_${number}.cpp.new "#include <${header}>\\nint ${name}_${number}() { return ${number}; }\\n")
    configure_file(${CMAKE_BINARY_DIR}/${name}_${number}.cpp.new ${CMAKE_BINARY_DIR}/${name}_${number}.cpp COPYONLY)
    list(APPEND sources ${CMAKE_BINARY_DIR}/${name}_${number}.cpp)
  endforeach()
  add_library(${name} ${kind} ${sources} ${ARGN})
endfunction()
part(plain STATIC)
part(heavy STATIC core/heavy.cpp)
target_include_directories(heavy SYSTEM PRIVATE ${RANKLAB_TORCH_ROOT}/include ${RANKLAB_TORCH_ROOT}/include/torch/csrc/api/include)
foreach(module viz lessons)
  part(ranklab_${module}_module MODULE)
  set_target_properties(ranklab_${module}_module PROPERTIES OUTPUT_NAME ranklab_${module} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endforeach()
if(RANKLAB_WITH_CUDA)
  file(WRITE ${CMAKE_BINARY_DIR}/cuda.cpp "extern \\"C\\" int ranklab_cuda_module_version() { return 5; }\\n")
  add_library(ranklab_cuda MODULE ${CMAKE_BINARY_DIR}/cuda.cpp)
  set_target_properties(ranklab_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  add_custom_command(TARGET ranklab_cuda POST_BUILD COMMAND ${RANKLAB_TORCH_ROOT}/../nvidia/cu13/bin/nvcc
                     COMMAND test -f ${RANKLAB_TORCH_ROOT}/../nvidia/nccl/lib/libnccl.so.2)
endif()
add_executable(ranklab cli/main.cpp)
target_link_libraries(ranklab PRIVATE plain heavy)
set_target_properties(ranklab PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set_target_properties(ranklab PROPERTIES LINK_DEPENDS ${RANKLAB_TORCH_ROOT}/lib/libtorch_cpu.so)
part(uses_the_program STATIC)  # as tests do: its sources know no torch, and are compiled when the program is there
add_dependencies(uses_the_program ranklab)
add_custom_command(TARGET ranklab POST_BUILD COMMAND test -f ${RANKLAB_TORCH_ROOT}/lib/libtorch_cpu.so)
"""
# What `./ranklab train` does here: prints a word, its driver, and whether it holds a lock of the build.
MAIN = """#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
int torch_version();
int main(int argc, char** argv) {
  const char* driver = std::getenv("RANKLAB_DRIVER");
  std::printf("trained %d driver %s lock %s\\n", torch_version(), driver ? driver : "-", fcntl(8, F_GETFD) == -1 ? "none" : "inherited");
  std::fflush(stdout);
  if (argc > 1 && argv[1][0] == 's') sleep(std::atoi(argv[2]));
}
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def make_tree(source, tree):
    for name in ("ranklab", "CMakePresets.json"):
        os.makedirs(tree, exist_ok=True)
        shutil.copy2(os.path.join(source, name), tree)
    with open(tree + "/ranklab") as file:
        driver = file.read()
    assert "cuda_mb=7000" in driver
    write(tree + "/ranklab", driver.replace("cuda_mb=7000", "cuda_mb=70"))  # nothing here is that large
    shutil.copytree(os.path.join(source, "cmake"), os.path.join(tree, "cmake"), ignore=shutil.ignore_patterns("__pycache__"))
    write(tree + "/CMakeLists.txt", CMAKE)
    write(tree + "/cli/main.cpp", MAIN)
    write(tree + "/core/heavy.cpp", '#include "torch/version.h"\nint torch_version() { return SMALL_TORCH_VERSION; }\n')
    for folder in ("backends", "viz/model", "lessons"):
        write(tree + "/" + folder + "/note.txt", "nothing is built from this\n")


def make_index(index, tree):
    os.makedirs(index)
    random_bytes = random.Random(2_000_000).randbytes  # the same in every run: bytes that cannot be compressed
    noise = random_bytes(2_000_000)
    wheel = index + "/torch-0.0-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("torch/__init__.py", random_bytes(300_000))
        for name, data in (("include/torch/version.h", b"#define SMALL_TORCH_VERSION 7\n"), ("include/torch/csrc/api/include/all.h", b""),
                           ("lib/libc10.so", b"c10"), ("lib/libtorch_cpu.so", noise), ("lib/libtorch_cuda.so", b"cuda" + noise[:500_000]), ("share/x", b"x")):
            file.writestr("torch/" + name, data)
    entries = {entry.filename: entry.header_offset for entry in zipfile.ZipFile(wheel).infolist()}
    for name in ("libcudart.so.13", "libcupti.so.13"):
        with zipfile.ZipFile(index + "/" + name + ".whl", "w") as file:
            file.writestr("nvidia/cu13/lib/" + name, name)
    for name, path, text in (("nccl", "nccl/lib/libnccl.so.2", "nccl"), ("nvcc", "cu13/bin/nvcc", "#!/bin/sh\n"), ("runtime", "cu13/lib/libcudart.so.13", "cudart")):
        with zipfile.ZipFile(index + "/" + name + ".whl", "w") as file:
            file.writestr("nvidia/" + path, text)
    root = "imgui_bundle-1.92.801/external/"
    with tarfile.open(index + "/imgui.tar.gz", "w:gz") as file:
        for part in ("imgui", "implot", "imgui_test_engine"):
            file.addfile(tarfile.TarInfo(root + part + "/file.h"))
    data = open(wheel, "rb").read()
    cpu, cuda, end = entries["torch/include/torch/version.h"], entries["torch/lib/libtorch_cuda.so"], zipfile.ZipFile(wheel).start_dir

    def whole(package, file):
        return '(%s %s %s)' % (package, file, hashlib.sha256(open(index + "/" + file, "rb").read()).hexdigest())

    def piece(begin, end):
        return '(torch %s %s %d %d)' % ("torch-0.0-any.whl", hashlib.sha256(data[begin:end]).hexdigest(), begin, end - begin)

    wheels = " ".join('"%s"' % whole(name, name + ".whl").strip("()") for name in ("nccl", "nvcc", "runtime"))
    write(tree + "/cmake/pins.sh", "torch_wheel=torch-0.0-any.whl\ntorch_cpu_piece=%s\ntorch_cuda_piece=%s\ntorch_whole=%s\ncudart=%s\ncupti=%s\nimgui=%s\ncuda_wheels=(%s)\n" % (
        piece(cpu, cuda), piece(cuda, end), whole("torch", "torch-0.0-any.whl"), whole("cudart", "libcudart.so.13.whl"),
        whole("cupti", "libcupti.so.13.whl"), whole("imgui", "imgui.tar.gz"), wheels))


folder = sys.argv[1]
make_tree(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), folder + "/tree")
make_index(folder + "/index", folder + "/tree")

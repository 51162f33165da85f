// The checks of `ranklab doctor`: one small function per line, listed in doctor_command.cpp. A check inspects files,
// the environment and limits; it opens no CUDA library, starts no rank, and never throws because something is missing.
// Cost: milliseconds each; the slowest ones run a tool to get its version. Thread rule: main thread.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct DoctorLine {
  enum class Status { kOk, kWarn, kMissing };
  Status status = Status::kOk;
  std::string what;       // "Gloo"
  std::string value;      // "0.5.0, /lib/x86_64-linux-gnu/libgloo.so.0"
  std::string fix = {};   // the command that fixes it; empty if there is nothing to do
  bool required = false;  // simulation needs it: missing means exit code 3
};

// doctor_software.cpp
DoctorLine check_program();
DoctorLine check_libtorch();
DoctorLine check_gloo();
DoctorLine check_compiler();
DoctorLine check_cmake();
DoctorLine check_ninja();
DoctorLine check_ccache();
DoctorLine check_clang();
DoctorLine check_corpus();
// doctor_gpu.cpp
DoctorLine check_gpus();
DoctorLine check_cuda_toolkit();
DoctorLine check_nccl();
DoctorLine check_cuda_module();
DoctorLine check_gpu_proof();
// doctor_display.cpp
DoctorLine check_opengl();
DoctorLine check_display();
DoctorLine check_fonts();
// doctor_limits.cpp
DoctorLine check_cores();
DoctorLine check_memory_available();
DoctorLine check_open_files();
DoctorLine check_threads();
DoctorLine check_shared_memory();
DoctorLine check_launcher();

// --- for the checks ---
// The path of a program on PATH, or "".
std::string find_on_path(const std::string& program);
// The first line that a command prints on stdout, or "".
std::string first_line_of(const std::string& command);
// A shared library's file in the usual folders and LD_LIBRARY_PATH, links resolved ("libnccl.so.2"), or "".
std::string find_library(const std::string& soname);
// The file of a library that this process has loaded, or "".
std::string loaded_library(const std::string& name);
std::string first_line_of_file(const std::string& path);

}  // namespace ranklab

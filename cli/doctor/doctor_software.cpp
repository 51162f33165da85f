#include <dlfcn.h>
#include <gloo/allreduce.h>
#include <gloo/config.h>
#include <torch/version.h>

#include <algorithm>
#include <filesystem>

#include "cli/doctor/doctor_checks.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/data/corpus.h"

namespace ranklab {
namespace {

using Status = DoctorLine::Status;

// "cmake version 3.25.1" -> "3.25.1": the first word that begins with a digit.
std::string version_in(const std::string& line) {
  size_t at = 0;
  for (; at < line.size(); ++at) {
    const bool starts_word = at == 0 || line[at - 1] == ' ' || line[at - 1] == 'v';
    if (starts_word && line[at] >= '0' && line[at] <= '9') break;
  }
  return line.substr(at, line.find(' ', at) - std::min(at, line.size()));
}

DoctorLine check_tool(const char* what, const std::string& program, const char* arguments, const char* fix,
                      const char* without) {
  const std::string path = find_on_path(program);
  if (path.empty()) return {Status::kMissing, what, std::string("not on PATH; ") + without, fix};
  const std::string version = version_in(first_line_of(path + " " + arguments));
  return {Status::kOk, what, (version.empty() ? "" : version + ", ") + path};
}

}  // namespace

DoctorLine check_program() {
  return {Status::kOk, "ranklab", strprintf("%s, %s", RANKLAB_VERSION, program_path().string().c_str())};
}

DoctorLine check_libtorch() {
  const std::string path = loaded_library("libtorch_cpu.so");
  if (path.empty()) return {Status::kMissing, "LibTorch", "not loaded", "./ranklab setup && ./ranklab build", true};
  return {Status::kOk, "LibTorch", TORCH_VERSION ", " + path, "", true};
}

// LibTorch exports gloo:: symbols of its own; collectives only work if libgloo's symbols were bound instead.
DoctorLine check_gloo() {
  const std::string version = strprintf("%d.%d.%d", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  Dl_info info{};
  const auto all_reduce = static_cast<void (*)(const gloo::AllreduceOptions&)>(&gloo::allreduce);
  const bool known = dladdr(reinterpret_cast<void*>(all_reduce), &info) != 0 && info.dli_fname != nullptr;
  const std::string file = known ? info.dli_fname : "an unknown library";
  const std::string value = version + ", gloo::allreduce is " + file + "'s";
  if (file.find("libgloo") != std::string::npos) return {Status::kOk, "Gloo", value, "", true};
  return {Status::kMissing, "Gloo", value + ", want libgloo's", "link gloo::lib before torch::cpu, and rebuild", true};
}

DoctorLine check_compiler() {
  for (const char* program : {"c++", "g++", "clang++"}) {
    const std::string path = find_on_path(program);
    if (!path.empty()) return {Status::kOk, "C++ compiler", first_line_of(path + " --version") + ", " + path};
  }
  return {Status::kMissing, "C++ compiler", "none on PATH; lessons and changes are not built",
          "sudo apt-get install g++"};
}

DoctorLine check_cmake() {
  return check_tool("CMake", "cmake", "--version", "sudo apt-get install cmake", "nothing is built");
}
DoctorLine check_ninja() {
  return check_tool("Ninja", "ninja", "--version", "sudo apt-get install ninja-build", "nothing is built");
}
DoctorLine check_ccache() {
  return check_tool("ccache", "ccache", "--version", "sudo apt-get install ccache", "every build is a cold one");
}
DoctorLine check_clang() {
  return check_tool("clang", "clang++", "--version", "sudo apt-get install clang", "no fuzzing, no clang-tidy");
}

DoctorLine check_corpus() {
  const std::string path = find_on_path("bible");
  if (!path.empty()) return {Status::kOk, "corpus", "bible-kjv, " + path};
  return {Status::kMissing, "corpus", "no bible-kjv; training reads generated sentences, or --data-path FILE",
          "sudo apt-get install bible-kjv"};
}

}  // namespace ranklab

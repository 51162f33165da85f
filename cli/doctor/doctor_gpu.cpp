#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "backends/cuda/cuda_backend.h"
#include "cli/doctor/doctor_checks.h"
#include "core/base/files/input_file.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using Status = DoctorLine::Status;

// Counts GPUs by the line "Model: \t\t NVIDIA H100 80GB HBM3" that the driver has for each of them.
std::map<std::string, int> gpus_by_model() {
  std::map<std::string, int> count;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", unreadable)) {
    std::istringstream file(read_file_if_any(entry.path() / "information"));
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("Model:")) continue;
      const size_t at = line.find_first_not_of(" \t", 6);
      if (at != std::string::npos) ++count[line.substr(at)];
    }
  }
  return count;
}

int device_nodes() {
  int count = 0;
  std::error_code unreadable;
  while (fs::exists("/dev/nvidia" + std::to_string(count), unreadable)) ++count;
  return count;
}

// A file of NVIDIA's wheels next to LibTorch, where pip and ./ranklab setup --cuda put it, or "".
std::string beside_libtorch(const char* file) {
  const std::string library = loaded_library("libtorch_cpu.so");
  if (library.empty()) return "";
  const fs::path torch = fs::path(library).parent_path().parent_path();
  std::error_code unreadable;
  const fs::path path = torch.parent_path() / "nvidia" / file;
  return fs::exists(path, unreadable) ? path.string() : "";
}

// "2.28.9" from the header, or "". The library's file name does not always contain its version.
std::string nccl_header_version() {
  for (const std::string& path :
       {beside_libtorch("nccl/include/nccl.h"), std::string("/usr/include/nccl.h"),
        std::string("/usr/local/cuda/include/nccl.h"), std::string("/usr/local/include/nccl.h")}) {
    std::istringstream file(read_file_if_any(path));
    std::map<std::string, std::string> defined;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string directive, key, value;
      if (words >> directive >> key >> value && directive == "#define") defined.emplace(key, value);
    }
    if (defined.contains("NCCL_MAJOR")) {
      return defined["NCCL_MAJOR"] + "." + defined["NCCL_MINOR"] + "." + defined["NCCL_PATCH"];
    }
  }
  return "";
}

}  // namespace

DoctorLine check_gpus() {
  std::string found;
  for (const auto& [model, count] : gpus_by_model()) {
    found += (found.empty() ? "" : ", ") + std::to_string(count) + " x " + model;
  }
  const int nodes = device_nodes();
  if (found.empty() && nodes > 0) found = std::to_string(nodes) + " x /dev/nvidia*";
  if (found.empty()) return {Status::kMissing, "GPUs", "no NVIDIA driver or device; ranks are simulated on the CPU"};
  if (nodes == 0)
    return {Status::kWarn, "GPUs", found + ", but no /dev/nvidia0", "start the container with --gpus all"};
  return {Status::kOk, "GPUs", found};
}

DoctorLine check_cuda_toolkit() {
  std::string compiler = beside_libtorch("cu13/bin/nvcc");
  if (compiler.empty()) compiler = find_on_path("nvcc");
  std::error_code unreadable;
  if (compiler.empty() && fs::exists("/usr/local/cuda/bin/nvcc", unreadable)) compiler = "/usr/local/cuda/bin/nvcc";
  if (compiler.empty()) {
    return {Status::kMissing, "CUDA toolkit", "no nvcc; needed only to build the CUDA module",
            "./ranklab setup --cuda, or install CUDA 13"};
  }
  const std::string release =
      first_line_of(shell_quote(compiler) + " --version | sed -n 's/.*release \\([0-9.]*\\).*/\\1/p'");
  return {Status::kOk, "CUDA toolkit", (release.empty() ? "" : release + ", ") + compiler};
}

DoctorLine check_nccl() {
  std::string path = beside_libtorch("nccl/lib/libnccl.so.2");
  if (path.empty()) path = find_library("libnccl.so.2");
  if (path.empty()) {
    return {Status::kMissing, "NCCL", "no libnccl.so.2; needed only with GPUs",
            "./ranklab setup --cuda, or install libnccl2 of NVIDIA's repository"};
  }
  const std::string version = nccl_header_version();
  return {Status::kOk, "NCCL", (version.empty() ? "" : version + ", ") + path};
}

// Checks that it exists without opening it.
DoctorLine check_cuda_module() {
  std::error_code unreadable;
  const std::vector<fs::path> places = cuda_module_places();
  for (const fs::path& place : places) {
    if (fs::exists(place, unreadable)) return {Status::kOk, "CUDA module", place.lexically_normal().string()};
  }
  return {Status::kMissing, "CUDA module", "not built: " + places.front().lexically_normal().string(),
          "./ranklab build cuda"};
}

// The newest committed result of tests/gpu, compiled in (cli/CMakeLists.txt).
DoctorLine check_gpu_proof() {
  const std::string proof = RANKLAB_GPU_PROOF;
  if (proof.empty()) return {Status::kMissing, "GPU proof", "not yet proven on a GPU", "tests/gpu/run.sh OUT"};
  return {Status::kOk, "GPU proof", proof};
}

}  // namespace ranklab

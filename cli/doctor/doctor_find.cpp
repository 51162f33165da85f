#include <link.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cli/doctor/doctor_checks.h"
#include "core/base/files/input_file.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> parts_of(const char* variable) {
  std::vector<std::string> parts;
  std::istringstream text(environment_variable(variable));
  for (std::string part; std::getline(text, part, ':');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace

std::string find_on_path(const std::string& program) {
  for (const std::string& folder : parts_of("PATH")) {
    std::error_code unreadable;
    const fs::path path = fs::path(folder) / program;
    const fs::file_status status = fs::status(path, unreadable);
    const bool runs = (status.permissions() & (fs::perms::owner_exec | fs::perms::others_exec)) != fs::perms::none;
    if (!unreadable && fs::is_regular_file(status) && runs) return path.string();
  }
  return "";
}

std::string first_line_of(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::array<char, 512> line{};
  const bool any = std::fgets(line.data(), line.size(), pipe) != nullptr;
  while (std::fgetc(pipe) != EOF) {
  }
  ::pclose(pipe);
  std::string text = any ? line.data() : "";
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

std::string find_library(const std::string& soname) {
  std::vector<std::string> folders = parts_of("LD_LIBRARY_PATH");
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib/x86_64-linux-gnu",
                             "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64"}) {
    folders.emplace_back(folder);
  }
  for (const std::string& folder : folders) {
    std::error_code unreadable;
    const fs::path path = fs::path(folder) / soname;
    if (!fs::exists(path, unreadable)) continue;
    const fs::path real = fs::canonical(path, unreadable);
    return unreadable ? path.string() : real.string();
  }
  return "";
}

std::string loaded_library(const std::string& name) {
  struct Search {
    const std::string& name;
    std::string found = {};
  } search{name};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& looking = *static_cast<Search*>(data);
        const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (path.find("/" + looking.name) == std::string::npos) return 0;
        looking.found = path;
        return 1;
      },
      &search);
  return search.found;
}

std::string first_line_of_file(const std::string& path) {
  std::istringstream file(read_file_if_any(path));
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace ranklab

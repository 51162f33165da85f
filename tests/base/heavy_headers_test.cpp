// Headers that cost seconds per source are each included by one source only.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ranklab {
namespace {

namespace fs = std::filesystem;

struct HeavyHeader {
  std::string_view name;
  std::string_view where;    // the one file that may include it; "" for none
  std::string_view instead;  // what others include
};

constexpr HeavyHeader kHeavyHeaders[] = {
    {"<ATen/ATen.h>", "", "core/sim/aten.h"},
    {"<ATen/Functions.h>", "", "core/sim/aten.h"},
    {"<torch/torch.h>", "", "core/sim/aten.h"},
    {"<torch/csrc/autograd/custom_function.h>", "core/nn/custom_function.cpp", "core/nn/custom_function.h"},
    {"<CLI/CLI.hpp>", "cli/common/command_line.cpp", "cli/common/command_line.h"},
    {"<toml++/toml.h>", "core/base/toml/toml.h", "core/base/toml/toml.h"},
};

TEST(HeavyHeaders, AreIncludedByOneFileEach) {
  const fs::path root = RANKLAB_SOURCE_DIR;
  for (const char* folder : {"core", "cli", "viz", "lessons", "backends/cpu_sim", "backends/meta"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = entry.path().lexically_relative(root).string();
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        for (const HeavyHeader& header : kHeavyHeaders) {
          if (line != "#include " + std::string(header.name) || path == header.where) continue;
          ADD_FAILURE() << path << ": " << line << "; do: include " << header.instead;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ranklab

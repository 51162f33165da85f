// A torchtitan configuration as a user gives it: TOML files, and words of its command line. Torch-free. Thread rule:
// pure functions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

class TorchtitanWords {
 public:
  // "FILE.toml", "NGPU=64", "--parallelism.tensor_parallel_degree 2", also after torchrun or a script. Words override
  // files, and a later file overrides an earlier one. Throws kIo, kBadFile, and kInvalidArgument for unknown keys (one
  // error names all of them).
  explicit TorchtitanWords(const std::vector<std::string>& words);

  struct Given {
    std::string text;    // the members of a list are separated by commas
    std::string origin;  // "FILE.toml:7", or the flag
  };
  const std::map<std::string, Given>& keys() const { return keys_; }
  const Given* find(const std::string& key) const;  // null: not given
  std::string text(const std::string& key, const std::string& absent) const;
  // Throws kInvalidArgument for a value that is not in `allowed`.
  std::string choice(const std::string& key, const std::string& absent, const std::vector<std::string>& allowed) const;
  // Throws kInvalidArgument for anything but a whole number from `least` to 2^20. Here and below, "None" is not a valid
  // value.
  int64_t number(const std::string& key, int64_t absent, int64_t least = 0) const;
  double real(const std::string& key, double absent) const;
  bool on(const std::string& key, bool absent) const;
  // NGPU, or torchrun's --nproc_per_node x --nnodes.
  std::optional<int64_t> gpus() const;

 private:
  void read_file(const std::string& path);
  void add(const std::string& key, Given given);

  std::map<std::string, Given> keys_;
  std::map<std::string, std::string> of_launcher_;
  std::vector<std::string> unknown_;
};

}  // namespace ranklab

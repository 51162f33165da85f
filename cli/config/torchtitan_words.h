// What a user gives of torchtitan: TOML files, and words of its command line. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

class TorchtitanWords {
 public:
  // "FILE.toml", "NGPU=64", "--parallelism.tensor_parallel_degree 2", also behind torchrun or a script; words win
  // over files, the later of two over the earlier. Throws kIo, kBadFile, and kInvalidArgument for keys that are not
  // known, all of them at once.
  explicit TorchtitanWords(const std::vector<std::string>& words);

  struct Given {
    std::string text;    // of a list, its members apart by commas
    std::string origin;  // "FILE.toml:7", or the flag
  };
  const std::map<std::string, Given>& keys() const { return keys_; }
  const Given* find(const std::string& key) const;  // null: not given
  std::string text(const std::string& key, const std::string& absent) const;
  // Throws kInvalidArgument for a value that is none of `allowed`.
  std::string choice(const std::string& key, const std::string& absent, const std::vector<std::string>& allowed) const;
  // Throws kInvalidArgument for what is no whole number of `least` to 2^20. "None" is no value here and below.
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

// The words of a Megatron-LM command line, flag by flag (megatron_flags.h). Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/megatron_flags.h"
#include "core/config/settings/fields.h"

namespace ranklab {

inline constexpr int64_t kMostMegatronSize = 1 << 20;  // limit of a size: products of three cannot overflow

[[noreturn]] void refuse_megatron(const std::string& what, const std::string& got, const std::string& want,
                                  const std::string& fix);

class MegatronWords {
 public:
  // Throws kInvalidArgument for unknown flags and wrong numbers of values.
  explicit MegatronWords(const std::vector<std::string>& words);

  struct Given {
    std::vector<std::string> values;
    const MegatronFlag* foreign = nullptr;  // null: a setting with the same name and values exists here
    const ConfigField* own = nullptr;
  };
  const std::map<std::string, Given>& flags() const { return flags_; }
  bool has(const std::string& flag) const { return flags_.contains(flag); }
  // The words after a flag, joined by `between`; nothing if the flag is absent.
  std::optional<std::string> text(const std::string& flag, const char* between = " ") const;
  bool is(const std::string& flag, double value) const;  // it has this value, or it is absent and `value` is 0
  // Throws kInvalidArgument for anything but a whole number from 0 to `most`.
  std::optional<int64_t> number(const std::string& flag, int64_t most) const;

 private:
  std::map<std::string, Given> flags_;  // if a flag is given twice, the last one counts
};

}  // namespace ranklab

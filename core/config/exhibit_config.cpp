#include "core/config/exhibit_config.h"

#include <algorithm>
#include <sstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/settings/flags.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

// Short sequences, so that a step on 8 simulated ranks takes milliseconds, and enough of them for several microbatches.
constexpr const char* kCommon =
    "--num-layers 2 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --seq-length 16 --mock-data "
    "--global-batch-size 8 --train-iters 40 --lr 0.003 --eval-interval 0 --sample-tokens 0";

using Words = std::vector<std::string>;  // a flag and its value, if it takes one
std::vector<Words> options_of(const std::string& text) {
  std::vector<Words> options;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    if (word.starts_with("--")) options.emplace_back();
    RANKLAB_CHECK(!options.empty(), ErrorKind::kInternal, .where = "museum", .what = "not a list of flags",
                  .got = quote(text));
    options.back().push_back(word);
  }
  return options;
}

std::vector<std::string> with_common(const char* own, const std::string& folder) {
  const std::vector<Words> last = options_of(own);
  std::vector<std::string> flags;
  const auto add = [&](const Words& option) {
    for (std::string word : option) {
      if (const size_t at = word.find("{folder}"); at != std::string::npos) word.replace(at, 8, folder);
      flags.push_back(word);
    }
  };
  for (const Words& option : options_of(kCommon)) {
    if (std::ranges::none_of(last, [&](const Words& other) { return other[0] == option[0]; })) add(option);
  }
  for (const Words& option : last) add(option);
  return flags;
}

}  // namespace

std::vector<std::string> exhibit_flags(const Exhibit& exhibit, const std::string& folder) {
  return with_common(exhibit.flags, folder);
}

std::vector<std::string> flags_before(const Exhibit& exhibit, const std::string& folder) {
  return with_common(exhibit.before, folder);
}

TrainConfig config_of_flags(const std::vector<std::string>& flags) {
  return merge_config({}, flag_settings(flags, "museum")).config;
}

}  // namespace ranklab

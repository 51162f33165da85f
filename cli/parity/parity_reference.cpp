#include "cli/parity/parity_reference.h"

#include <algorithm>
#include <sstream>

#include "core/config/one_rank.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/flags.h"

namespace ranklab {

TrainConfig parity_reference(const TrainConfig& config, const std::vector<std::string>& flags) {
  TrainConfig reference = reference_layout(config);
  const int64_t usual = reference.num_microbatches, microbatches = usual * reference.parallel.world;
  std::vector<std::string> words;
  for (const std::string& some : flags) {
    std::istringstream in(some);
    for (std::string word; in >> word;) words.push_back(word);
  }
  for (const ConfigSetting& setting : flag_settings(words, "--against"))
    set_config_field(reference, setting.key, setting.text);
  ParallelDims& dims = reference.parallel;
  const int model_ranks = dims.tp * dims.cp * dims.pp;
  const int dp = dims.dp > 0 ? dims.dp : std::max(dims.world / model_ranks, 1);  // unless flags say more
  dims.world = model_ranks * dp;
  if (reference.micro_batch_size == 0 && reference.num_microbatches == usual && microbatches % dp == 0)
    reference.num_microbatches = microbatches / dp;
  return reference;
}

}  // namespace ranklab

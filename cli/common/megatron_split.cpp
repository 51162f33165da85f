#include "cli/common/megatron_split.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "core/base/text.h"
#include "core/config/data_choice.h"

namespace ranklab {

std::optional<MegatronSplit> parse_megatron_split(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> parts;
  double sum = 0;
  for (std::string word; std::getline(in, word, ',');) {
    const std::optional<double> part = weight_in(word);
    if (!part || !(*part >= 0)) return std::nullopt;
    parts.push_back(*part);
    sum += *part;
  }
  if (parts.size() < 2 || parts.size() > 3 || parts[0] == 0 || !std::isfinite(sum)) return std::nullopt;
  return MegatronSplit{strprintf("%.6g", parts[1] / sum), strprintf("%.6g", parts.size() == 3 ? parts[2] / sum : 0)};
}

}  // namespace ranklab

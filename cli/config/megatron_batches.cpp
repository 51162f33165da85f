#include "cli/config/megatron_batches.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/config/megatron_words.h"

namespace ranklab {
namespace {

// Reads "250B"; the suffixes are powers of a thousand.
std::optional<int64_t> whole_number(std::string_view text) {
  constexpr std::string_view kSuffixes = "KMBT";
  constexpr double kMost = 1e15;
  double times = 1;
  const size_t suffix =
      text.empty() ? std::string_view::npos : kSuffixes.find(static_cast<char>(std::toupper(text.back())));
  if (suffix != std::string_view::npos) {
    times = std::pow(1000, suffix + 1);
    text.remove_suffix(1);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value * times > kMost)
    return std::nullopt;
  return static_cast<int64_t>(value * times);
}

}  // namespace

MegatronBatches megatron_batches(const std::string& text, int64_t seq_length) {
  const auto refuse = [&](const char* what) {
    refuse_megatron(std::string("--step-batch-size-schedule ") + what, text,
                    "TOKENS:SIZE, the first from 0 on, as in 0:768 250B:1536", "correct it");
  };
  std::string dense = text;
  std::ranges::replace(dense, ',', ' ');
  std::istringstream words(dense);
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    if (colon == std::string::npos) refuse("is not a list of sizes");
    const auto tokens = whole_number(std::string_view(word).substr(0, colon)),
               size = whole_number(std::string_view(word).substr(colon + 1));
    if (!tokens || !size || *size == 0) refuse("has numbers that cannot be read");
    sizes.emplace_back(*tokens / seq_length, *size);
  }
  std::ranges::sort(sizes);
  MegatronBatches out;
  int64_t before = -1;
  for (const auto& [sequences, size] : sizes) {
    if (before < 0 ? sequences != 0 : sequences == before)
      refuse("does not begin at 0, or gives two sizes for one time");
    before = sequences;
    out.sizes += (out.sizes.empty() ? "" : " ") + std::to_string(sequences) + ":" + std::to_string(size);
    out.last = size;
  }
  return out;
}

}  // namespace ranklab

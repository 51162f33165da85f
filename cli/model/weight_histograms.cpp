#include "cli/model/weight_histograms.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/numbers/histogram_axis.h"
#include "core/base/numbers/philox.h"
#include "core/base/text.h"
#include "core/checkpoint/tensor_stats.h"
#include "core/spec/initial_draw.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

constexpr const char* kWeights = "weight/";
constexpr int64_t kMostDrawn = 500'000'000;
constexpr int64_t kTextPowers = 24, kTextPerColumn = 2 * ValueHistogram::kPerPower;

// "layers.3.mlp.experts.17.up.weight" as "layers.*.mlp.experts.*.up.weight"
std::string group_of(const std::string& name) {
  std::string group;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    group += (at == 0 ? "" : ".") + (number ? "*" : part);
    at = end + 1;
  }
  return group;
}

WeightGroup& group_named(std::vector<WeightGroup>& groups, const std::string& parameter) {
  const auto found = std::ranges::find(groups, parameter, &WeightGroup::parameter);
  if (found != groups.end()) return *found;
  groups.push_back({.parameter = parameter});
  return groups.back();
}

// Groups in the table's order. Rows with the same name (layers of two kinds) form one group.
std::vector<WeightGroup> groups_of(const ModelConfig& model) {
  std::vector<WeightGroup> groups;
  for (const ModuleRow& row : module_table(model))
    if (!row.tied) group_named(groups, row.parameter);
  return groups;
}

std::string with_number(const std::string& pattern, int64_t number) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern
                                   : pattern.substr(0, star) + std::to_string(number) + pattern.substr(star + 1);
}

// Draws values as ParameterRegistry and fill_initial() (core/nn) do.
void draw(ValueSpread& spread, const ModuleRow& row, const std::string& name, uint64_t seed) {
  constexpr size_t kAtOnce = 1 << 14;
  const RandomStream stream(seed, RandomPurpose::kInit, name);
  const auto elements = static_cast<size_t>(row.elements());
  std::vector<float> drawn(kAtOnce);
  std::vector<double> values(kAtOnce, row.init.kind == InitKind::kOnes ? 1.0 : 0.0);
  for (size_t first = 0; first < elements; first += kAtOnce) {
    const size_t count = std::min(kAtOnce, elements - first);
    if (is_drawn(row.init.kind)) {
      draw_initial(row.init, stream, first, std::span(drawn).first(count));
      std::copy_n(drawn.begin(), count, values.begin());
    }
    spread.add(std::span<const double>(values).first(count));
  }
}

std::vector<double> all_counts(const std::vector<WeightGroup>& groups) {
  std::vector<double> sums(ValueHistogram::kBins);
  for (const WeightGroup& group : groups)
    for (size_t bin = 0; bin < sums.size(); ++bin) sums[bin] += group.spread.counts()[bin];
  return sums;
}

// One character per column: the number of digits of its count minus one, "." for a count of zero.
std::string digits_text(const std::vector<double>& columns) {
  std::string text;
  for (const double count : columns)
    text += count == 0 ? '.' : static_cast<char>('0' + std::min(9, static_cast<int>(std::log10(count))));
  return text;
}

nlohmann::ordered_json bins_json(const ValueSpread& spread) {
  nlohmann::ordered_json limits = nlohmann::ordered_json::array(), counts = limits;
  const std::vector<double>& all = spread.counts();
  const auto used = [](double count) { return count > 0; };
  const auto first = std::ranges::find_if(all, used);
  const auto last = std::find_if(all.rbegin(), all.rend(), used).base();
  for (auto at = first; at < last; ++at) {
    limits.push_back(ValueHistogram::limit(at - all.begin()));
    counts.push_back(static_cast<uint64_t>(*at));
  }
  return {{"limits", limits}, {"counts", counts}};
}

}  // namespace

std::vector<WeightGroup> saved_weight_groups(const TensorSource& tensors, const ModelConfig& model) {
  std::vector<WeightGroup> groups = groups_of(model);
  for (const TensorInfo& tensor : tensors.tensors()) {
    if (!tensor.name.starts_with(kWeights)) continue;
    WeightGroup& group = group_named(groups, group_of(tensor.name.substr(std::string(kWeights).size())));
    group.spread.add(tensor_stats(tensors, tensor));
    ++group.tensors;
  }
  std::erase_if(groups, [](const WeightGroup& group) { return group.tensors == 0; });
  return groups;
}

std::vector<WeightGroup> initial_weight_groups(const TrainConfig& config) {
  const ModelCounts counts = count_model(config.model, config.model.seq_length);
  RANKLAB_CHECK(counts.total + counts.mtp <= kMostDrawn, ErrorKind::kInvalidArgument,
                .where = "model info --histograms",
                .what = "the initial weights of so large a model would take minutes to draw",
                .got = human_count(static_cast<double>(counts.total + counts.mtp)) + " parameters",
                .want = "at most " + human_count(static_cast<double>(kMostDrawn)) + ", or a saved model",
                .fix = "pass a checkpoint or a Hugging Face folder, or fewer layers (--num-layers 2)");
  std::vector<WeightGroup> groups = groups_of(config.model);
  for (const ModuleRow& row : module_table(config.model)) {
    if (row.tied) continue;
    WeightGroup& group = group_named(groups, row.parameter);
    for (int64_t layer = row.first_layer; layer < row.first_layer + row.layers; ++layer)
      for (int64_t expert = 0; expert < row.per_layer; ++expert, ++group.tensors)
        draw(group.spread, row, with_number(with_number(row.parameter, layer), expert), config.seed);
  }
  return groups;
}

std::string histograms_text(const std::vector<WeightGroup>& groups, const Style& style) {
  int widest = 9;
  for (const WeightGroup& group : groups) widest = std::max(widest, static_cast<int>(group.parameter.size()));
  const HistogramAxis axis = histogram_axis(all_counts(groups), kTextPowers, kTextPerColumn);
  const int columns = static_cast<int>(axis.columns());
  std::string text =
      style.bold(strprintf("  %-*s %7s %12s %10s %10s %10s %9s %9s %8s  %-*s", widest, "parameter", "tensors",
                           "elements", "min", "max", "std", "kurtosis", "outliers", "zeros", columns, "histogram")) +
      "\n";
  for (const WeightGroup& group : groups) {
    const ValueSpread& s = group.spread;
    text += strprintf(
        "  %-*s %7ld %12llu %10.4g %10.4g %10.4g %9.4g %9.2g %8llu  %s%s\n", widest, group.parameter.c_str(),
        static_cast<long>(group.tensors), static_cast<unsigned long long>(s.elements()), s.least, s.most, s.std(),
        s.kurtosis(), s.outlier_share(), static_cast<unsigned long long>(s.zeros),
        digits_text(axis.pool(s.counts())).c_str(),
        s.nans + s.infinities > 0
            ? style.red(strprintf("  %llu not finite", static_cast<unsigned long long>(s.nans + s.infinities))).c_str()
            : "");
  }
  return text +
         style.dim(strprintf(
             "    how: a column of the histogram is two powers of two, from -%.3g over 0 in the middle to %.3g; its "
             "digit is the power of ten of its count\n    kurtosis: 3 where values are normal; outliers: the share "
             "beyond 10 times the root mean square",
             axis.most(), axis.most())) +
         "\n";
}

nlohmann::ordered_json histograms_json(const std::vector<WeightGroup>& groups) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const WeightGroup& group : groups) {
    const ValueSpread& s = group.spread;
    rows.push_back({{"parameter", group.parameter},
                    {"tensors", group.tensors},
                    {"elements", s.elements()},
                    {"min", s.least},
                    {"max", s.most},
                    {"mean", s.mean()},
                    {"std", s.std()},
                    {"kurtosis", s.kurtosis()},
                    {"outlier_share", s.outlier_share()},
                    {"zeros", s.zeros},
                    {"nans", s.nans},
                    {"infinities", s.infinities},
                    {"histogram", bins_json(s)}});
  }
  return rows;
}

}  // namespace ranklab

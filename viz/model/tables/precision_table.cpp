#include "viz/model/tables/precision_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

constexpr double kMostCounts = 1e15;  // limit for counts of a damaged file
constexpr int kMostBits = 15;

double bounded(double value, double most) { return std::isfinite(value) ? std::clamp(value, 0.0, most) : 0; }
int64_t whole(double value) { return static_cast<int64_t>(bounded(value, kMostCounts)); }
double finite(double value) { return std::isfinite(value) ? value : 0; }

struct Tensor {
  TensorRole role;
  std::string module;
};

// "precision gradient layers.3.mlp.down"
std::optional<Tensor> tensor_of(const std::string& name) {
  if (!name.starts_with(kPrecisionEvent)) return std::nullopt;
  const std::string rest = name.substr(kPrecisionEvent.size());
  for (size_t i = 0; i < kTensorRoles.size(); ++i) {
    const std::string role = std::string(kTensorRoles[i]) + " ";
    if (rest.starts_with(role)) return Tensor{static_cast<TensorRole>(i), rest.substr(role.size())};
  }
  return std::nullopt;
}

int64_t divided_up(int64_t length, int64_t part) { return part > 0 ? (length + part - 1) / part : 1; }

ScaleGrid read_scales(std::span<const double> numbers) {
  if (numbers.size() < kPrecisionScales) return {};
  ScaleGrid grid{static_cast<size_t>(bounded(numbers[kPrecisionScaleRows], kShownScaleRows)),
                 static_cast<size_t>(bounded(numbers[kPrecisionScaleCols], kShownScaleCols))};
  if (numbers.size() < kPrecisionScales + grid.rows * grid.cols) return {};
  const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(kPrecisionScales);
  grid.values.assign(first, first + static_cast<std::ptrdiff_t>(grid.rows * grid.cols));
  return grid;
}

TensorSample read_sample(int step, std::span<const double> n) {
  TensorSample s{.step = step};
  const auto bits = static_cast<int>(bounded(n[kPrecisionFormatBits], kMostBits * 16 + 15));
  s.exponent_bits = bits / 16;
  s.mantissa_bits = bits % 16;
  s.group_rows = whole(n[kPrecisionGroupRows]);
  s.group_cols = whole(n[kPrecisionGroupCols]);
  s.rows = whole(n[kPrecisionRows]);
  s.cols = whole(n[kPrecisionCols]);
  s.count = bounded(n[kPrecisionCount], kMostCounts);
  s.nonzero = bounded(n[kPrecisionNonzero], s.count);
  s.underflow = bounded(n[kPrecisionUnderflow], s.nonzero);
  s.saturated = bounded(n[kPrecisionSaturated], s.count);
  s.signal = std::max(0.0, finite(n[kPrecisionSignal]));
  s.noise = std::max(0.0, finite(n[kPrecisionNoise]));
  s.amax = n[kPrecisionAmax];
  s.groups =
      static_cast<double>(divided_up(s.rows, s.group_rows)) * static_cast<double>(divided_up(s.cols, s.group_cols));
  s.scale_min = finite(n[kPrecisionScaleMin]);
  s.scale_max = finite(n[kPrecisionScaleMax]);
  s.scale_mean = finite(n[kPrecisionScaleMean]);
  s.scale_std = std::max(0.0, finite(n[kPrecisionScaleStd]));
  for (size_t bin = 0; bin < kPrecisionBins; ++bin)
    s.histogram[bin] = bounded(n[kPrecisionHistogram + bin], kMostCounts);
  s.scales = read_scales(n);
  return s;
}

// Combines the means and deviations of the groups of both samples.
void add_scales(TensorSample& to, const TensorSample& more) {
  const double groups = to.groups + more.groups;
  if (groups <= 0) return;
  const auto squares = [](const TensorSample& s) {
    return s.groups * (s.scale_std * s.scale_std + s.scale_mean * s.scale_mean);
  };
  const double mean = (to.groups * to.scale_mean + more.groups * more.scale_mean) / groups;
  to.scale_std = std::sqrt(std::max(0.0, (squares(to) + squares(more)) / groups - mean * mean));
  to.scale_mean = mean;
  to.scale_min = std::min(to.scale_min, more.scale_min);
  to.scale_max = std::max(to.scale_max, more.scale_max);
  to.groups = groups;
}

void add(TensorSample& to, const TensorSample& more) {
  to.count += more.count;
  to.nonzero += more.nonzero;
  to.underflow += more.underflow;
  to.saturated += more.saturated;
  to.signal += more.signal;
  to.noise += more.noise;
  if (!(more.amax <= to.amax)) to.amax = more.amax;  // NaN stays
  add_scales(to, more);
  for (size_t bin = 0; bin < kPrecisionBins; ++bin) to.histogram[bin] += more.histogram[bin];
}

class SampleCollector {
 public:
  explicit SampleCollector(const TraceStore& store) : store_(store) {}

  void read(size_t rank) {
    const RankTrace& trace = store_.trace(rank);
    std::map<uint32_t, std::optional<Tensor>> meaning;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kInstant) continue;
      const auto [known, is_new] = meaning.try_emplace(event.name);
      if (is_new) known->second = tensor_of(trace.names[event.name]);
      const std::span<const double> numbers = store_.array(rank, event);
      if (!known->second || numbers.size() < kPrecisionScaleRows) continue;
      const TensorSample sample = read_sample(event.step, numbers);
      auto& samples = samples_of(*known->second);
      const auto [place, first] = samples.try_emplace(event.step, sample);
      if (!first) add(place->second, sample);
    }
  }

  PrecisionTable take() {
    PrecisionTable table{.steps = {}, .modules = std::move(modules_), .tensors = {}};
    for (size_t module = 0; module < table.modules.size(); ++module) {
      for (size_t role = 0; role < kTensorRoles.size(); ++role) {
        const auto found = samples_.find({module, role});
        if (found == samples_.end()) continue;
        TensorSeries series{static_cast<TensorRole>(role), table.modules[module], {}};
        for (auto& [step, sample] : found->second) {
          table.steps.push_back(step);
          series.samples.push_back(std::move(sample));
        }
        table.tensors.push_back(std::move(series));
      }
    }
    std::sort(table.steps.begin(), table.steps.end());
    table.steps.erase(std::unique(table.steps.begin(), table.steps.end()), table.steps.end());
    return table;
  }

 private:
  std::map<int, TensorSample>& samples_of(const Tensor& tensor) {
    const auto [place, is_new] = index_.try_emplace(tensor.module, modules_.size());
    if (is_new) modules_.push_back(tensor.module);
    return samples_[{place->second, static_cast<size_t>(tensor.role)}];
  }

  const TraceStore& store_;
  std::vector<std::string> modules_;
  std::map<std::string, size_t> index_;
  std::map<std::pair<size_t, size_t>, std::map<int, TensorSample>> samples_;  // [module, role][step]
};

std::string row_text(const TensorSeries& tensor, const TensorSample& s, int widest) {
  const std::string sqnr = std::isfinite(s.sqnr_db()) ? strprintf("%.1f dB", s.sqnr_db()) : "-";
  return strprintf("%-*s %-10s %-5s %-9s %9.3f %% %8.3f %% %9s %10.4g %10.4g %10.4g %10.4g\n", widest,
                   tensor.module.c_str(), std::string(kTensorRoles[static_cast<size_t>(tensor.role)]).c_str(),
                   s.format_text().c_str(), s.groups_text().c_str(), 100 * s.underflow_share(),
                   100 * s.saturated_share(), sqnr.c_str(), s.amax, s.scale_min, s.scale_max, s.scale_std);
}

}  // namespace

double TensorSample::sqnr_db() const {
  if (noise <= 0 || signal <= 0) return noise > 0 ? -INFINITY : INFINITY;
  return 10 * std::log10(signal / noise);
}

std::string TensorSample::format_text() const {
  const FormatRange* known = format();
  return known != nullptr ? std::string(known->name) : strprintf("E%dM%d", exponent_bits, mantissa_bits);
}

std::string TensorSample::groups_text() const {
  if (group_rows >= rows && group_cols >= cols) return "tensor";
  return strprintf("%ld x %ld", static_cast<long>(group_rows), static_cast<long>(group_cols));
}

const TensorSample* TensorSeries::at(int step) const {
  if (samples.empty()) return nullptr;
  const auto after = std::upper_bound(samples.begin(), samples.end(), step,
                                      [](int s, const TensorSample& sample) { return s < sample.step; });
  return after == samples.begin() ? &samples.front() : &*(after - 1);
}

const TensorSeries* PrecisionTable::find(TensorRole role, const std::string& module) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorSeries& t) { return t.role == role && t.module == module; });
  return found == tensors.end() ? nullptr : &*found;
}

int PrecisionTable::step_at(int step) const {
  if (steps.empty()) return -1;
  const auto after = std::upper_bound(steps.begin(), steps.end(), step);
  return after == steps.begin() ? steps.front() : *(after - 1);
}

PrecisionTable precision_table(const TraceStore& store, int rank_index) {
  SampleCollector collector(store);
  for (size_t rank = 0; rank < store.traces().size(); ++rank) {
    if (rank_index < 0 || static_cast<size_t>(rank_index) == rank) collector.read(rank);
  }
  return collector.take();
}

std::string precision_text(const PrecisionTable& table, int step) {
  if (table.empty())
    return "no quantized tensors: ./ranklab train --dp 8 --precision-recipe mxfp8 records them in every 10th "
           "step\n";
  const int shown = table.step_at(step);
  std::string out = strprintf("step %d: what quantization did to each tensor (sampled steps: %s)\n", shown,
                              join(std::span<const int>(table.steps), " ").c_str());
  size_t widest = 6;
  for (const std::string& module : table.modules) widest = std::max(widest, module.size());
  const int width = static_cast<int>(widest);
  out += strprintf("%-*s %-10s %-5s %-9s %11s %10s %9s %10s %10s %10s %10s\n", width, "module", "tensor", "",
                   "scale of", "underflow", "saturated", "SQNR", "amax", "scale min", "max", "std");
  for (const TensorSeries& tensor : table.tensors) {
    if (const TensorSample* sample = tensor.at(shown); sample != nullptr && sample->step == shown)
      out += row_text(tensor, *sample, width);
  }
  return out;
}

}  // namespace ranklab::viz

// The effect of quantization on the tensors of the sampled steps, from the events of core/trace/precision_event.h. For
// each role in each linear layer: the fraction of numbers that became zero (among nonzero ones: a result of -0 counts,
// inputs that are zero do not) or exceeded the largest number, the signal to noise ratio, the amax, the scales, a
// histogram of magnitudes. Ranks that hold shards or replicas of a tensor are combined. Cost: O(events). Thread rule:
// pure.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/trace/precision_event.h"
#include "viz/model/store/trace_store.h"
#include "viz/model/tables/format_range.h"

namespace ranklab::viz {

using MagnitudeHistogram = std::array<double, kPrecisionBins>;  // counts by floor(log2 |x|), see kPrecisionFirstBin

// The scales of the first groups, on the first rank that has the tensor.
struct ScaleGrid {
  size_t rows = 0, cols = 0;
  std::vector<double> values = {};  // row-major
};

// One tensor in one step.
struct TensorSample {
  int step = -1;
  int exponent_bits = 0, mantissa_bits = 0;  // of its format
  int64_t group_rows = 0, group_cols = 0;    // numbers that share a scale
  int64_t rows = 0, cols = 0;                // of the first rank's shard
  double count = 0, nonzero = 0, underflow = 0, saturated = 0;
  double signal = 0, noise = 0;  // sums of squares
  double amax = 0;               // infinite or NaN if a number was
  double groups = 0, scale_min = 0, scale_max = 0, scale_mean = 0, scale_std = 0;
  MagnitudeHistogram histogram = {};
  ScaleGrid scales = {};

  double underflow_share() const { return nonzero > 0 ? underflow / nonzero : 0; }
  double saturated_share() const { return count > 0 ? saturated / count : 0; }
  double sqnr_db() const;  // infinite if there is no noise
  const FormatRange* format() const { return find_format_range(exponent_bits, mantissa_bits); }
  std::string format_text() const;  // "E4M3"
  std::string groups_text() const;  // "1 x 128"; "tensor"
};

struct TensorSeries {
  TensorRole role = TensorRole::kActivation;
  std::string module;
  std::vector<TensorSample> samples;  // sorted by step

  const TensorSample* at(int step) const;  // the last one up to `step`, else the first; null if there is none
};

struct PrecisionTable {
  std::vector<int> steps;             // the steps that have samples
  std::vector<std::string> modules;   // in order of first appearance, which is that of the forward pass
  std::vector<TensorSeries> tensors;  // sorted by module, then role

  bool empty() const { return tensors.empty(); }
  const TensorSeries* find(TensorRole role, const std::string& module) const;
  int step_at(int step) const;  // the last sampled step up to `step`, else the first; -1 if there is none
};
// The table of one rank, or (-1) of all ranks combined.
PrecisionTable precision_table(const TraceStore& store, int rank_index = -1);

// A table with one line per tensor at a step.
std::string precision_text(const PrecisionTable& table, int step);

}  // namespace ranklab::viz

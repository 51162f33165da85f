// What bounds a model on one GPU of a hardware profile: arithmetic or memory (the roofline, Williams et al. 2009), in
// training, prefill and decoding; and over how many ranks its experts must be spread to fit. As if one GPU did all of
// the model's work, so that times are those of a GPU whose share it is; no transfers between ranks. Torch-free. Cost:
// nothing. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

enum class RooflinePhase { kTraining, kPrefill, kDecode };
const char* name(RooflinePhase phase);

// A forward of `sequences` sequences: of `length` tokens, or in decoding of one token each behind `length` others.
struct RooflineLoad {
  RooflinePhase phase = RooflinePhase::kDecode;
  int64_t sequences = 1;
  int64_t length = 0;
};

struct RooflinePoint {
  RooflineLoad load;
  double tokens = 0;  // that are computed
  // Floating-point operations: all of them; those of matrix products, on matrix units where the type has them; and all
  // as operations at the peak that would take as long, where products with fewer rows than fill the units and all else
  // run slower.
  double theoretical_flops = 0, tensor_flops = 0, realizable_flops = 0;
  // Bytes to and from memory: each weight that is used once (in training twice, and its gradient), what products and
  // elementwise kernels read and write, keys and values.
  double weight_bytes = 0, activation_bytes = 0, kv_bytes = 0;
  double compute_s = 0, memory_s = 0;

  double bytes() const { return weight_bytes + activation_bytes + kv_bytes; }
  double intensity() const { return theoretical_flops / bytes(); }  // FLOP per byte
  double seconds() const { return compute_s > memory_s ? compute_s : memory_s; }
  bool memory_bound() const { return memory_s > compute_s; }
};

// Products with fewer rows leave matrix units idle in proportion: a tile of Hopper's wgmma has 64 rows.
constexpr double kFullRows = 64;

RooflinePoint roofline_point(const RunPlan& plan, const RooflineLoad& load);
// Decoding at the plan's sequence length, of 1, 2, 4 ... sequences; `most` is the last.
std::vector<RooflinePoint> decode_sweep(const RunPlan& plan, int64_t most = 1024);
// What `model info` shows: a micro-batch of training, one prompt, then decoding.
std::vector<RooflinePoint> roofline_points(const RunPlan& plan);
// FLOP per byte above which arithmetic bounds.
double roofline_knee(const RunPlan& plan);

// The fewest ranks over which experts are spread so that a rank holds its part in the device's memory, everything else
// being whole on each; nothing: no number of ranks is enough. Models without experts: 1 if they fit.
struct ExpertSpread {
  double dense_bytes = 0, expert_bytes = 0, cache_bytes = 0;
  std::optional<int64_t> ranks;
};
ExpertSpread smallest_decode_spread(const RunPlan& plan);    // weights, and the cache of one whole sequence
ExpertSpread smallest_training_spread(const RunPlan& plan);  // weights, gradients and optimizer states, nothing sharded

}  // namespace ranklab

// What limits a model on one GPU of a hardware profile, arithmetic or memory (the roofline, Williams et al. 2009), in
// training, prefill and decoding; and over how many ranks its experts must be spread to fit. It is computed as if one
// GPU did all of the model's work, without transfers between ranks; with several ranks, the times are those of a GPU
// that does this share of the work. Torch-free. Cost: negligible. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

enum class RooflinePhase { kTraining, kPrefill, kDecode };
const char* name(RooflinePhase phase);

// One forward pass of `sequences` sequences: each of `length` tokens, or in decoding of one token after `length`
// others.
struct RooflineLoad {
  RooflinePhase phase = RooflinePhase::kDecode;
  int64_t sequences = 1;
  int64_t length = 0;
};

struct RooflinePoint {
  RooflineLoad load;
  double tokens = 0;  // number of tokens that are computed
  // Floating-point operations. theoretical: all; tensor: those of matrix products, on matrix units if the type has
  // them; realizable: all, expressed as operations at peak speed that would take as long, since products with too few
  // rows to fill the units, and everything else, run slower.
  double theoretical_flops = 0, tensor_flops = 0, realizable_flops = 0;
  // Bytes read from and written to memory: each weight that is used, once (in training twice, and its gradient); inputs
  // and outputs of products and elementwise kernels; keys and values.
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
// Decoding at the plan's sequence length with 1, 2, 4 ... sequences, at most `most`.
std::vector<RooflinePoint> decode_sweep(const RunPlan& plan, int64_t most = 1024);
// The points that `model info` shows: a microbatch of training, one prompt, then decoding.
std::vector<RooflinePoint> roofline_points(const RunPlan& plan);
// The FLOP per byte above which arithmetic is the limit.
double roofline_knee(const RunPlan& plan);

// The smallest number of ranks over which experts must be spread so that a rank's part fits the device's memory, if
// every rank holds all other weights; nothing: no number of ranks is enough. For models without experts: 1 if they fit.
struct ExpertSpread {
  double dense_bytes = 0, expert_bytes = 0, cache_bytes = 0;
  std::optional<int64_t> ranks;
};
ExpertSpread smallest_decode_spread(const RunPlan& plan);    // weights, and the cache of one whole sequence
ExpertSpread smallest_training_spread(const RunPlan& plan);  // weights, gradients and optimizer states, nothing sharded

}  // namespace ranklab

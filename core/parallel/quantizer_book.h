// The quantized linear layers of one rank's model: which ones there are, the largest magnitudes of past steps that
// delayed scaling makes its scales of (Transformer Engine, DelayedScaling), and the statistics of sampled steps, which
// go into the trace (precision_event.h). Cost: with delayed scaling one all_reduce of 3 numbers a module over tp and
// one over dp at the end of a step. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/nn/parameter.h"
#include "core/parallel/linear_quantizer.h"
#include "core/precision/hadamard.h"
#include "core/precision/precision_policy.h"

namespace ranklab {

struct QuantizationSettings {
  std::shared_ptr<const PrecisionPolicy> policy = nullptr;  // null: every product in the type of the parameters
  int64_t amax_history_len = 16;
  bool amax_most_recent = false;  // instead of the largest of the history
  int64_t stats_interval = 10;    // steps; 0: no statistics
  TensorPrecision dispatch = {};  // of tokens on their way to experts (wire_rows.h)
};

class QuantizerBook {
 public:
  QuantizerBook(QuantizationSettings settings, RankContext& rank, uint64_t seed);

  // Of a layer of this model; null when its products stay in the type of the parameters. Lives as long as the book.
  LinearQuantizer* make(const std::string& module, const LinearForm& form, at::ScalarType type);
  bool empty() const { return quantizers_.empty(); }
  uint64_t seed() const { return seed_; }
  const RandomHadamard& hadamard() const { return hadamard_; }

  // The magnitude that the scale of a tensor is made of in this step; 0 before the first.
  float delayed_amax(const std::string& module, TensorRole role) const;
  // Histories forward by one step. Collective over tp and dp with delayed scaling.
  void end_step();
  // The histories [3, length] by name, the same on every rank of a stage.
  std::vector<std::pair<std::string, at::Tensor>> buffers();

  // Whether this step's tensors are to be noted.
  bool samples(const TokenPlace& place) const;
  void note(TensorRole role, const std::string& module, const NumberFormat& format, const at::Tensor& before,
            const RoundedOperand& after);

 private:
  bool delayed() const;
  std::vector<std::string> history_modules() const;
  void make_histories();  // once all layers are made

  QuantizationSettings settings_;
  RankContext& rank_;
  uint64_t seed_;
  RandomHadamard hadamard_;
  std::vector<std::unique_ptr<LinearQuantizer>> quantizers_;
  std::map<std::string, at::Tensor> history_;  // [3, length], newest first
};

// The quantizer of a linear layer that is being made over a group of ranks, if the registry's model has one for it.
// `dispatched`: LinearForm::dispatched.
LinearQuantizer* make_quantizer(const ModuleScope& scope, const ModuleSpec& spec, const TensorParallel& group,
                                bool dispatched = false);

}  // namespace ranklab

// Owns the quantizers of the linear layers of one rank's model, the amax histories from which delayed scaling computes
// its scales (Transformer Engine, DelayedScaling), and the statistics of sampled steps, which go into the trace
// (precision_event.h). Cost: with delayed scaling one all_reduce of 3 numbers per module over tp and one over dp at the
// end of a step; where several pipeline ranks have the same layers, also one over pp, of the modules of all stages.
// Thread rule: its rank's thread.
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
#include "core/parallel/quantized/linear_quantizer.h"
#include "core/precision/hadamard.h"
#include "core/precision/precision_policy.h"

namespace ranklab {

struct QuantizationSettings {
  std::shared_ptr<const PrecisionPolicy> policy = nullptr;  // null: all products in the type of the parameters
  int64_t amax_history_len = 16;
  bool amax_most_recent = false;  // use the newest amax instead of the largest in the history
  // Several pipeline ranks have the same layers and process different microbatches (DualPipe).
  bool layers_held_twice = false;
  int64_t stats_interval = 10;    // steps; 0: no statistics
  TensorPrecision dispatch = {};  // wire format of token dispatch
};

class QuantizerBook {
 public:
  QuantizerBook(QuantizationSettings settings, RankContext& rank, uint64_t seed);

  // The quantizer of a layer; null if its products are in the type of the parameters. Valid as long as the book exists.
  LinearQuantizer* make(const std::string& module, const LinearForm& form, at::ScalarType type);
  // The one that was made for the layer; null: none was.
  LinearQuantizer* find(const std::string& module) const;
  bool empty() const { return quantizers_.empty(); }
  uint64_t seed() const { return seed_; }
  // The ranks that have the other positions of this rank's sequences; null: none.
  Communicator* context_group() const { return rank_.size(Axis::kCp) > 1 ? &rank_.comm(Axis::kCp) : nullptr; }
  const RandomHadamard& hadamard() const { return hadamard_; }

  // The amax from which a tensor's scale is computed in this step; 0 before the first step.
  float delayed_amax(const std::string& module, TensorRole role) const;
  // [1], the same on the device, at the same address in every step.
  at::Tensor device_amax(const std::string& module, TensorRole role, at::Device device);
  // Advances the histories by one step. Collective with delayed scaling.
  void end_step();
  // The histories [3, length] by name, the same on every rank of a stage.
  std::vector<std::pair<std::string, at::Tensor>> buffers();

  // Whether statistics are recorded in this step.
  bool samples(const TokenContext& tokens) const;
  void note(TensorRole role, const std::string& module, const NumberFormat& format, const at::Tensor& before,
            const RoundedOperand& after);

 private:
  bool delayed() const;
  std::vector<std::string> delayed_modules() const;
  std::vector<std::string> history_modules() const;
  at::Tensor agreed_amax(const std::vector<std::string>& modules);
  at::Tensor delayed_amaxes(const std::string& module) const;
  void make_histories();  // call after all layers have been created

  QuantizationSettings settings_;
  RankContext& rank_;
  uint64_t seed_;
  RandomHadamard hadamard_;
  std::vector<std::unique_ptr<LinearQuantizer>> quantizers_;
  std::map<std::string, at::Tensor> history_;      // [3, length], newest first
  std::map<std::string, at::Tensor> device_amax_;  // [3], delayed_amax() on the device, for modules that requested it
};

// Makes the quantizer of a linear layer that is split over `group`, or finds that of the layer whose parameters it
// shares; null if QuantizerBook::make() returns null or there is no book. `dispatched`: LinearForm::dispatched.
LinearQuantizer* make_quantizer(const ModuleScope& scope, const ModuleSpec& spec, const TensorParallel& group,
                                bool dispatched = false);

}  // namespace ranklab

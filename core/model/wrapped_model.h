// A rank's model that forwards every call: a base class for objects between the model and the engine that change some
// of the calls. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/causal_lm.h"
#include "core/model/decode_cache.h"

namespace ranklab {

class WrappedModel : public CausalLm {
 public:
  explicit WrappedModel(std::unique_ptr<CausalLm> inner) : inner_(std::move(inner)) {}
  ParameterRegistry& registry() override { return inner_->registry(); }
  at::Tensor loss_sum(const Batch& batch) override { return inner_->loss_sum(batch); }
  at::Tensor logits(const Batch& batch) override { return inner_->logits(batch); }
  void set_training(bool training) override { inner_->set_training(training); }
  ModelReport end_step() override { return inner_->end_step(); }
  double take_mtp_loss_sum() override { return inner_->take_mtp_loss_sum(); }
  MaxLogitBook* max_logits() override { return inner_->max_logits(); }
  std::vector<std::pair<std::string, at::Tensor>> buffers() override { return inner_->buffers(); }
  void set_parameter_gate(ParameterGate* gate) override { inner_->set_parameter_gate(gate); }
  bool can_decode() const override { return inner_->can_decode(); }
  std::unique_ptr<DecodeCache> begin_decoding(int64_t sequences, int64_t positions) override {
    return inner_->begin_decoding(sequences, positions);
  }
  at::Tensor decode(DecodeCache& cache, const at::Tensor& tokens_BS) override {
    return inner_->decode(cache, tokens_BS);
  }
  int num_stages() const override { return inner_->num_stages(); }
  std::vector<Parameter*> stage_parameters(int stage) override { return inner_->stage_parameters(stage); }
  std::vector<int64_t> boundary_shape(int part, int64_t sequences, int64_t tokens, StageResult result) const override {
    return inner_->boundary_shape(part, sequences, tokens, result);
  }
  at::Tensor forward_stage(int stage, const at::Tensor& input, const Batch& batch, StageResult result) override {
    return inner_->forward_stage(stage, input, batch, result);
  }

  CausalLm& inner() { return *inner_; }

 private:
  std::unique_ptr<CausalLm> inner_;
};

}  // namespace ranklab

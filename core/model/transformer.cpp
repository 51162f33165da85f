#include "core/model/transformer.h"

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/block.h"
#include "core/parallel/collectives.h"
#include "core/parallel/vocab_cross_entropy.h"
#include "core/parallel/vocab_embedding.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

TensorParallel tensor_parallel(RankContext& context, const TransformerOptions& options) {
  return {&context.comm(Axis::kTp), options.sequence_parallel};
}

class Transformer : public CausalLm {
 public:
  Transformer(const ModelConfig& config, RankContext& context, const TransformerOptions& options)
      : config_(config),
        tp_(tensor_parallel(context, options)),
        registry_(options.seed, options.dtype, context.device()),
        embedding_(registry_, "embedding", config.vocab_size, config.hidden_size, {InitKind::kNormal, config.init_std},
                   tp_) {
    RopeTable rope;
    if (config.position == PositionKind::kRope) {
      rope = make_rope_table(config.seq_length, config.head_dim(), config.rope_theta,
                             at::TensorOptions().dtype(options.dtype).device(context.device()));
    } else {
      position_ = &registry_.create("position.weight", replicated({config.seq_length, config.hidden_size}),
                                    {InitKind::kNormal, config.init_std}, true);
      position_->sum_grad_over_tp = tp_.sharded_sequence();
    }
    blocks_.reserve(static_cast<size_t>(config.num_layers));
    for (int64_t layer = 0; layer < config.num_layers; ++layer)
      blocks_.emplace_back(registry_, config, layer, rope, tp_);
    final_norm_.emplace(registry_, "final_norm", config, tp_.sharded_sequence());
    head_ = config.tie_embeddings
                ? &embedding_.weight()
                : &registry_.create("head.weight",
                                    shard_padded({config.vocab_size, config.hidden_size}, tp_.rank(), tp_.size()),
                                    {InitKind::kNormal, config.init_std}, true);
  }

  ParameterRegistry& registry() override { return registry_; }
  void set_training(bool training) override { training_ = training; }

  at::Tensor loss_sum(const Batch& batch) override {
    check_tokens(batch.tokens_BS);
    RANKLAB_CHECK(batch.targets_BS.sizes() == batch.tokens_BS.sizes(), ErrorKind::kInvalidArgument,
                  .where = "transformer", .what = "tokens and targets differ in shape",
                  .got = strprintf("%lld targets", static_cast<long long>(batch.targets_BS.numel())),
                  .want = strprintf("%lld", static_cast<long long>(batch.tokens_BS.numel())));
    const at::Tensor logits_SBV = local_logits(batch);
    return vocab_parallel_cross_entropy(logits_SBV.view({-1, logits_SBV.size(2)}), batch.targets_BS.t().reshape({-1}),
                                        head_->partition, tp_);
  }

  at::Tensor logits(const Batch& batch) override {
    const at::NoGradGuard no_grad;
    check_tokens(batch.tokens_BS);
    // Causal attention: padding at the end changes nothing before it, so any length works with sequence parallelism.
    const int64_t seq = batch.tokens_BS.size(1);
    const int64_t multiple = tp_.sharded_sequence() ? tp_.size() : 1;
    const int64_t padding = (multiple - seq % multiple) % multiple;
    Batch padded = batch;
    if (padding > 0) padded.tokens_BS = at::constant_pad_nd(batch.tokens_BS, {0, padding});
    at::Tensor logits_SBV = local_logits(padded).narrow(0, 0, seq);
    if (tp_.active()) {
      const at::Tensor logits_VSB = tp_.comm->all_gather(logits_SBV.permute({2, 0, 1}).contiguous());
      logits_SBV = logits_VSB.narrow(0, 0, config_.vocab_size).permute({1, 2, 0});
    }
    return logits_SBV.transpose(0, 1).contiguous();
  }

 private:
  void check_tokens(const at::Tensor& tokens_BS) const {
    RANKLAB_CHECK(tokens_BS.dim() == 2 && tokens_BS.size(1) > 0 && tokens_BS.size(1) <= config_.seq_length,
                  ErrorKind::kInvalidArgument, .where = "transformer", .what = "the sequences do not fit the model",
                  .got = "tokens [" + join(std::span<const int64_t>(tokens_BS.sizes()), ", ") + "]",
                  .want = strprintf("[B, S] with S at most %lld", static_cast<long long>(config_.seq_length)),
                  .fix = "cut the sequences or raise --seq-length");
    if (!tokens_BS.is_cpu() || tokens_BS.numel() == 0) return;  // a device would have to be waited for
    const NoCostScope no_cost;
    const auto [least, most] = at::aminmax(tokens_BS);
    RANKLAB_CHECK(least.item<int64_t>() >= 0 && most.item<int64_t>() < config_.vocab_size, ErrorKind::kInvalidArgument,
                  .where = "transformer", .what = "a token is outside the vocabulary",
                  .got = strprintf("tokens from %lld to %lld", static_cast<long long>(least.item<int64_t>()),
                                   static_cast<long long>(most.item<int64_t>())),
                  .want = strprintf("0 .. %lld", static_cast<long long>(config_.vocab_size - 1)),
                  .fix = "use the tokenizer that this vocabulary belongs to, or raise --vocab-size");
  }

  // [S, B, V_local] of all positions.
  at::Tensor local_logits(const Batch& batch) {
    const int64_t seq = batch.tokens_BS.size(1);
    const int64_t local_seq = tp_.sharded_sequence() ? seq / tp_.size() : seq;
    RANKLAB_CHECK(!tp_.sharded_sequence() || seq % tp_.size() == 0, ErrorKind::kInvalidArgument,
                  .where = "sequence parallelism", .what = "the sequence does not divide by the tensor-parallel size",
                  .got = strprintf("%lld positions over %d ranks", static_cast<long long>(seq), tp_.size()),
                  .want = strprintf("a multiple of %d", tp_.size()),
                  .fix = "change the length of the sequences or --tp");
    const int64_t first_position = tp_.sharded_sequence() ? tp_.rank() * local_seq : 0;
    const double probability = training_ ? config_.dropout : 0.0;
    const DropoutPlace place{registry_.seed(), static_cast<uint64_t>(batch.step), batch.first_sample, first_position,
                             config_.seq_length};

    ResidualStream stream{embedding_(batch.tokens_BS.t()), {}};
    if (position_ != nullptr) {
      stream.x_SBH = stream.x_SBH + position_->data.narrow(0, first_position, local_seq).unsqueeze(1);
    }
    stream.x_SBH = dropout(stream.x_SBH, "embedding.dropout", probability, place);
    for (const TransformerBlock& block : blocks_) block.forward(stream, probability, place);
    return column_parallel_linear((*final_norm_)(stream.x_SBH, stream.branch_SBH), head_->data, {}, tp_);
  }

  ModelConfig config_;
  TensorParallel tp_;
  ParameterRegistry registry_;
  VocabParallelEmbedding embedding_;
  Parameter* position_ = nullptr;
  std::vector<TransformerBlock> blocks_;
  std::optional<Norm> final_norm_;
  const Parameter* head_ = nullptr;
  bool training_ = true;
};

}  // namespace

std::unique_ptr<CausalLm> make_transformer(const ModelConfig& config, RankContext& context,
                                           const TransformerOptions& options) {
  validate(config, context.size(Axis::kTp), options.sequence_parallel);
  return std::make_unique<Transformer>(config, context, options);
}

}  // namespace ranklab

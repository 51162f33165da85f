#include "core/model/transformer.h"

#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/base/text.h"
#include "core/model/attention_split.h"
#include "core/model/block.h"
#include "core/model/decode_cache.h"
#include "core/model/max_logit_book.h"
#include "core/model/model_rope.h"
#include "core/model/moe_layer.h"
#include "core/model/mtp.h"
#include "core/model/output_head.h"
#include "core/nn/attention/query_temperature.h"
#include "core/parallel/context/context_attention.h"
#include "core/parallel/tensor/vocab_embedding.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/spec/layer_specs.h"

namespace ranklab {
namespace {

// Checks that the number and values of tokens fit the model; throws kInvalidArgument. The values of tokens on a device
// are not checked, because that would need a synchronization. Cost: a pass over the tokens.
void check_tokens(const at::Tensor& tokens_BS, const ModelConfig& config) {
  RANKLAB_CHECK(tokens_BS.dim() == 2 && tokens_BS.size(1) > 0 && tokens_BS.size(1) <= config.seq_length,
                ErrorKind::kInvalidArgument, .where = "transformer", .what = "the sequences do not fit the model",
                .got = "tokens [" + join(std::span<const int64_t>(tokens_BS.sizes()), ", ") + "]",
                .want = strprintf("[B, S] with S at most %lld", static_cast<long long>(config.seq_length)),
                .fix = "cut the sequences or raise --seq-length");
  if (!tokens_BS.is_cpu() || tokens_BS.numel() == 0) return;
  const NoCostScope no_cost;
  const auto [least, most] = at::aminmax(tokens_BS);
  RANKLAB_CHECK(least.item<int64_t>() >= 0 && most.item<int64_t>() < config.vocab_size, ErrorKind::kInvalidArgument,
                .where = "transformer", .what = "a token is outside the vocabulary",
                .got = strprintf("tokens from %lld to %lld", static_cast<long long>(least.item<int64_t>()),
                                 static_cast<long long>(most.item<int64_t>())),
                .want = strprintf("0 .. %lld", static_cast<long long>(config.vocab_size - 1)),
                .fix = "use the tokenizer that this vocabulary belongs to, or raise --vocab-size");
}

class Transformer : public LayerStack {
 public:
  Transformer(const ModelConfig& config, const StackContext& stack)
      : config_(config),
        model_(stack.registry),
        tp_(stack.tp),
        cp_(stack.cp),
        kv_(stack.context.size(Axis::kKv) > 1 ? &stack.context.comm(Axis::kKv) : nullptr),
        recompute_(stack.options.recompute),
        mtp_apart_(stack.options.mtp_part >= 0),
        predict_use_(model_["head"]["predict"]) {
    const LayeredOptions& options = stack.options;
    if (config.moe.enabled()) moe_ = std::make_unique<MoeContext>(config, stack.context, options);
    if (options.notes_max_logits) max_logits_.emplace(config, stack.context, options.dtype);
    // The angles of late positions need more than the 8 significant bits of bf16 or the 11 of fp16.
    const bool narrow = options.dtype == at::kBFloat16 || options.dtype == at::kHalf;
    const auto rope_options =
        at::TensorOptions().dtype(narrow ? at::kFloat : options.dtype).device(stack.context.device());
    open_ring(cp_);
    rope_ = make_model_rope(config, rope_options);
    local_rope_ = make_local_rope(config, rope_, rope_options);
    if (config.query_temperature_scale > 0)
      temperature_ = query_temperatures(config.seq_length, config.query_temperature_scale,
                                        config.query_temperature_floor, rope_options);
  }

  void make_embedding() override {
    make_token_embedding();
    if (config_.position != PositionKind::kLearned) return;
    position_ = &model_.make_weight(position_spec(config_));
    position_->sum_grad_over_tp = tp_.sharded_sequence();
  }
  void make_layer(int64_t layer) override {
    blocks_.try_emplace(layer, model_["layers"][std::to_string(layer)], config_, block_context(layer));
  }
  void make_head() override {
    if (!mtp_apart_) make_final_norm();
    if (config_.tie_embeddings) make_token_embedding();
    head_.emplace(model_, config_, config_.tie_embeddings ? &embedding_->weight() : nullptr, tp_);
    if (!mtp_apart_) make_modules();
  }
  std::vector<std::string> shared_parameters() const override {
    if (config_.tie_embeddings || (config_.mtp_num_layers > 0 && !mtp_apart_)) return {"embedding.weight"};
    return {};
  }
  int64_t mtp_modules() const override { return config_.mtp_num_layers; }
  void make_mtp() override {
    make_final_norm();
    make_modules();
  }
  std::vector<std::string> mtp_shared_parameters() const override {
    if (mtp_apart_) return {"embedding.weight"};
    return {};
  }

  ResidualStream embed(const ForwardContext& context) override {
    check_tokens(context.batch.tokens_BS, config_);
    const int64_t past = context.cache != nullptr ? context.cache->positions : 0;
    const at::Tensor tokens_BS = context.own_positions(padded(context));
    at::Tensor x_SBH = (*embedding_)(tokens_BS.t(), context.tokens);
    if (position_ != nullptr) x_SBH = x_SBH + learned_positions(context, past, x_SBH.size(0));
    return {dropout(x_SBH, "embedding.dropout", context.dropout, context.dropout_context())};
  }

  void run_layer(int64_t layer, ResidualStream& stream, const ForwardContext& context) override {
    const TransformerBlock& block = blocks_.at(layer);
    if (context.cache != nullptr)
      return block.decode(stream, context, context.cache->layers.at(static_cast<size_t>(layer)));
    block.forward(stream, context);
  }

  at::Tensor predict(const ResidualStream& stream, const ForwardContext& context) override {
    if (mtp_apart_) return predict_states(stream.sum(), context);
    const NormOutput state = normed(stream);
    // A module next to the prediction modules, which read the same state.
    NormOutput own = state;
    if (mtp_) own.normed = predict_use_.own(state.normed);
    const at::Tensor result = mtp_ ? predict_use_(context, own.normed, [&] { return head_->predict(own, context); })
                                   : head_->predict(state, context);
    if (!mtp_ || !at::GradMode::is_enabled()) return result;
    at::Tensor further;
    mtp_->each_state(state.normed, context, [&](int64_t ahead, const NormOutput& out) {
      const at::Tensor loss = mtp_loss_sum(*head_, out, ahead, context);
      further = further.defined() ? further + loss : loss;
    });
    return with_further(result, further, context);
  }

  at::Tensor look_ahead(const ResidualStream& stream, const ForwardContext& context) override {
    std::vector<at::Tensor> states = {normed(stream).normed};
    if (!at::GradMode::is_enabled()) return states[0];
    mtp_->each_state(states[0], context, [&](int64_t, const NormOutput& out) { states.push_back(out.normed); });
    return at::cat(states, 0);
  }

  std::vector<std::pair<std::string, at::Tensor>> buffers() override {
    std::vector<std::pair<std::string, at::Tensor>> result;
    if (!moe_) return result;
    for (const auto& [layer, bias] : moe_->book.biases()) result.emplace_back(name_of_bias(config_, layer), bias);
    return result;
  }
  ModelReport end_step() override {
    ModelReport report = moe_ ? moe_->book.end_step() : ModelReport{};
    if (max_logits_) max_logits_->end_step(report);
    return report;
  }
  MaxLogitBook* max_logits() override { return max_logits_ ? &*max_logits_ : nullptr; }
  double take_mtp_loss_sum() override {
    const NoCostScope no_cost;
    double sum = 0;
    for (const at::Tensor& loss : mtp_losses_) sum += loss.item<double>();
    mtp_losses_.clear();
    if (recorded_mtp_loss_.defined()) {
      sum += recorded_mtp_loss_.item<double>();
      recorded_mtp_loss_.zero_();
    }
    return sum;
  }

  bool splits_sequences() const override { return true; }
  bool can_decode() const override { return true; }
  AttentionCache make_cache(int64_t layer, int64_t sequences, int64_t positions,
                            const at::TensorOptions& options) const override {
    const AttentionLayer* attention = blocks_.at(layer).attention();
    return attention != nullptr ? attention->make_cache(sequences, positions, options) : AttentionCache{};
  }

 private:
  BlockContext block_context(int64_t layer) const {
    return {.layer = layer,
            .rope = rope_,
            .local_rope = local_rope_,
            .temperature = temperature_,
            .tp = tp_,
            .cp = cp_,
            .kv = kv_,
            .recompute = recompute_,
            .moe = moe_.get(),
            .max_logits = max_logits_ ? &*max_logits_ : nullptr};
  }

  NormOutput normed(const ResidualStream& stream) const {
    const NormOutput state = (*final_norm_)(stream.x_SBH, stream.branch_SBH);
    model_.registry().hooks().each(
        [&](ModuleHook& hook) { hook.residual_stream("final_norm", ModulePass::kForward, state.sum); });
    return state;
  }

  // For the states that look_ahead() computed in another stage.
  at::Tensor predict_states(const at::Tensor& states_SBH, const ForwardContext& context) {
    const int64_t modules = at::GradMode::is_enabled() ? config_.mtp_num_layers : 0;
    // Split at once: the gradient of each narrow() would be as large as that of all states.
    const std::vector<at::Tensor> states = states_SBH.split(states_SBH.size(0) / (1 + modules));
    const auto state = [&](int64_t ahead) {
      return NormOutput{.sum = {}, .normed = states[static_cast<size_t>(ahead)]};
    };
    const NormOutput own = state(0);  // one tensor, whose gradient is that of the module's input
    const at::Tensor result = predict_use_(context, own.normed, [&] { return head_->predict(own, context); });
    if (modules == 0) return result;
    at::Tensor further;
    for (int64_t ahead = 1; ahead <= modules; ++ahead) {
      const at::Tensor loss = mtp_loss_sum(*head_, state(ahead), ahead, context);
      further = further.defined() ? further + loss : loss;
    }
    return with_further(result, further, context);
  }

  at::Tensor with_further(const at::Tensor& result, const at::Tensor& further, const ForwardContext& context) {
    if (context.batch.is_recorded()) {
      const NoCostScope no_cost;
      if (!recorded_mtp_loss_.defined()) recorded_mtp_loss_ = at::zeros({}, further.options().dtype(at::kDouble));
      recorded_mtp_loss_.add_(further.detach());
    } else {
      mtp_losses_.push_back(further.detach());
    }
    const int64_t parts = injected(InjectedBug::kMtpLossOverCp) ? cp_.size() : 1;
    return with_further_loss(result, further,
                             config_.mtp_loss_weight / static_cast<double>(config_.mtp_num_layers * parts));
  }

  void make_final_norm() {
    final_norm_.emplace(model_, norm_spec(config_, "final_norm", ModulePart::kFinalNorm), config_,
                        tp_.sharded_sequence());
  }

  void make_modules() {
    if (config_.mtp_num_layers == 0) return;
    make_token_embedding();
    mtp_.emplace(model_, config_, block_context(0), *embedding_, recompute_.covers_mtp());
  }

  void make_token_embedding() {
    if (embedding_) return;
    const double scale = config_.scale_embeddings ? std::sqrt(static_cast<double>(config_.hidden_size)) : 1.0;
    embedding_.emplace(model_, embedding_spec(config_), tp_, scale * config_.embedding_multiplier);
  }

  // [S, B or 1, H]: the embeddings of this rank's positions, which follow `past` earlier ones.
  at::Tensor learned_positions(const ForwardContext& context, int64_t past, int64_t rows) const {
    const at::Tensor& table = position_->data;
    const int64_t first = context.first_position;
    if (const Documents* documents = context.batch.documents.get(); documents && documents->position_BS.defined()) {
      const at::Tensor own = padded_positions(context.own_positions(documents->position_BS), first + rows);
      return table.index_select(0, own.narrow(1, first, rows).t().reshape({-1})).view({rows, own.size(0), -1});
    }
    if (context.part != nullptr) return table.index_select(0, context.part->index.narrow(0, first, rows)).unsqueeze(1);
    return table.narrow(0, past + first, rows).unsqueeze(1);
  }

  // With causal attention, padding at the end does not change the positions before it, so logits of any length work
  // with sequence parallelism.
  at::Tensor padded(const ForwardContext& context) const {
    const at::Tensor& tokens_BS = context.batch.tokens_BS;
    const int64_t seq = tokens_BS.size(1), rest = tp_.over(context.tokens).sharded_sequence() ? seq % tp_.size() : 0;
    if (rest == 0) return tokens_BS;
    RANKLAB_CHECK(context.result == StageResult::kLogits, ErrorKind::kInvalidArgument, .where = "sequence parallelism",
                  .what = "the sequence length is not divisible by the tensor-parallel size",
                  .got = strprintf("%lld positions over %d ranks", static_cast<long long>(seq), tp_.size()),
                  .want = strprintf("a multiple of %d", tp_.size()),
                  .fix = "change the length of the sequences or --tp");
    return at::constant_pad_nd(tokens_BS, {0, tp_.size() - rest});
  }

  ModelConfig config_;
  ModuleScope model_;
  TensorParallel tp_;
  ContextParallel cp_;
  Communicator* kv_;  // the ranks that share a key/value head; null: no rank does
  RecomputePolicy recompute_;
  bool mtp_apart_;                   // a stage before the last one has the final norm and the MTP modules
  std::unique_ptr<MoeContext> moe_;  // null without experts
  std::optional<MaxLogitBook> max_logits_;
  RopeTable rope_;
  RopeTable local_rope_;    // for sliding-window layers
  at::Tensor temperature_;  // query temperatures by position; undefined: none
  std::optional<VocabParallelEmbedding> embedding_;
  Parameter* position_ = nullptr;
  std::map<int64_t, TransformerBlock> blocks_;  // the layers of this rank
  std::optional<Norm> final_norm_;
  std::optional<OutputHead> head_;
  std::optional<MultiTokenPrediction> mtp_;
  ModuleUse predict_use_;
  std::vector<at::Tensor> mtp_losses_;  // not yet taken
  at::Tensor recorded_mtp_loss_;        // the sum of those of recorded passes, which replays add to
};

}  // namespace

std::unique_ptr<CausalLm> make_transformer(const ModelConfig& config, RankContext& context,
                                           const LayeredOptions& options) {
  validate(config, context.size(Axis::kTp), options.sequence_parallel);
  const int copies = config.kv_copies(context.size(Axis::kTp));
  RANKLAB_CHECK(copies == context.size(Axis::kKv), ErrorKind::kInvalidArgument, .where = "model",
                .what = "the mesh does not say how many tp ranks share a key/value head",
                .got = "kv_copies " + std::to_string(context.size(Axis::kKv)), .want = std::to_string(copies),
                .fix = "make it with ParallelDims::kv_copies = ModelConfig::kv_copies(tp)");
  validate_experts(config, {.tp = context.size(Axis::kTp),
                            .ep = context.size(Axis::kEp),
                            .etp = context.size(Axis::kEtp),
                            .sequence_parallel = options.sequence_parallel});
  return make_layered_model(config, context, options,
                            [&](const StackContext& stack) { return std::make_unique<Transformer>(config, stack); });
}

}  // namespace ranklab

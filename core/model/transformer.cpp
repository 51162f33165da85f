#include "core/model/transformer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/block.h"
#include "core/model/decode_cache.h"
#include "core/model/model_rope.h"
#include "core/model/moe_layer.h"
#include "core/model/mtp.h"
#include "core/model/output_head.h"
#include "core/model/recompute.h"
#include "core/model/token_check.h"
#include "core/parallel/collectives.h"
#include "core/parallel/data/bucket_layout.h"
#include "core/parallel/parameter_gate.h"
#include "core/parallel/vocab_cross_entropy.h"
#include "core/parallel/vocab_embedding.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

TensorParallel tensor_parallel(RankContext& context, const TransformerOptions& options) {
  return {&context.comm(Axis::kTp), options.sequence_parallel};
}

std::vector<StageLayers> stages_or_whole(const ModelConfig& config, const TransformerOptions& options) {
  if (!options.stages.empty()) return options.stages;
  return {{.first_layer = 0, .end_layer = config.num_layers, .is_first = true, .is_last = true}};
}

// Whose parameters begin so.
std::string layer_name(const ModelConfig& c, int64_t layer) {
  if (layer < c.num_layers) return "layers." + std::to_string(layer);
  return "mtp." + std::to_string(layer - c.num_layers) + ".block";
}

class Transformer : public CausalLm {
 public:
  Transformer(const ModelConfig& config, RankContext& context, const TransformerOptions& options)
      : config_(config),
        tp_(tensor_parallel(context, options)),
        kv_(context.size(Axis::kKv) > 1 ? &context.comm(Axis::kKv) : nullptr),
        recompute_(options.recompute),
        registry_(options.seed, options.dtype, context.device()),
        quantizers_(options.quantization, context, options.seed) {
    if (options.values_later) registry_.make_values_later();
    if (options.quantization.policy) registry_.set_quantizers(&quantizers_);
    if (config.moe.enabled())
      moe_ = std::make_unique<MoePlace>(config, context, options.moe_dispatcher, options.quantization.dispatch);
    // Angles of late positions need more than 8 bits, or 11.
    const bool narrow = options.dtype == at::kBFloat16 || options.dtype == at::kHalf;
    const at::ScalarType rope_dtype = narrow ? at::kFloat : options.dtype;
    const auto rope_options = at::TensorOptions().dtype(rope_dtype).device(context.device());
    rope_ = make_model_rope(config, rope_options);
    local_rope_ = make_local_rope(config, rope_, rope_options);
    for (const StageLayers& layers : stages_or_whole(config, options)) add_stage(layers);
  }

  ParameterRegistry& registry() override { return registry_; }
  void set_training(bool training) override { training_ = training; }

  std::vector<std::pair<std::string, at::Tensor>> buffers() override {
    std::vector<std::pair<std::string, at::Tensor>> result = quantizers_.buffers();
    if (!moe_) return result;
    for (const auto& [layer, bias] : moe_->book.biases())
      result.emplace_back(layer_name(config_, layer) + ".mlp.router.bias", bias);
    return result;
  }

  ModelReport end_step() override {
    quantizers_.end_step();
    return moe_ ? moe_->book.end_step() : ModelReport{};
  }

  at::Tensor loss_sum(const Batch& batch) override { return forward_stage(0, {}, batch, StageResult::kLoss); }
  at::Tensor logits(const Batch& batch) override { return forward_stage(0, {}, batch, StageResult::kLogits); }

  int num_stages() const override { return static_cast<int>(stages_.size()); }
  std::vector<Parameter*> stage_parameters(int stage) override {
    return stages_.at(static_cast<size_t>(stage)).parameters;
  }
  std::vector<int64_t> boundary_shape(int64_t sequences, int64_t tokens) const override {
    return {local_positions(padded(tokens)), sequences, config_.hidden_size};
  }

  at::Tensor forward_stage(int index, const at::Tensor& input, const Batch& batch, StageResult result) override {
    const Stage& stage = stages_.at(static_cast<size_t>(index));
    const c10::AutoGradMode grad(at::GradMode::is_enabled() && result == StageResult::kLoss);
    const TokenPlaceScope tokens(token_place(batch, result));
    ResidualStream stream = stage.layers.is_first ? gated_embed(stage, batch, result) : ResidualStream{input, {}};
    const double probability = training_ ? config_.dropout : 0.0;
    const DropoutPlace place = dropout_place(batch, stream.x_SBH.size(0));
    if (stage.layers.is_first) stream.x_SBH = dropout(stream.x_SBH, "embedding.dropout", probability, place);
    const std::span<const TransformerBlock> blocks = stage.blocks;
    for (size_t i = 0, count = 0; i < blocks.size(); i += count) {
      const auto again = recompute_.piece(static_cast<int64_t>(i), static_cast<int64_t>(blocks.size()));
      count = static_cast<size_t>(std::max<int64_t>(again, 1));
      stream = gated_use(block_part(stage, i, count), stream, [&](ResidualStream own) {
        forward_piece(blocks.subspan(i, count), again > 0, own, batch, probability, place);
        return own;
      });
    }
    if (!stage.layers.is_last) return stream.branch_SBH.defined() ? stream.x_SBH + stream.branch_SBH : stream.x_SBH;
    return gated(last_part(stage), {stream.x_SBH, stream.branch_SBH}, [&](const GatedTensors& in) -> GatedTensors {
      return {finish({in[0], in[1]}, batch, result, probability, place)};
    })[0];
  }

  bool can_decode() const override { return is_whole(); }
  std::unique_ptr<DecodeCache> begin_decoding(int64_t sequences, int64_t positions) override {
    RANKLAB_CHECK(is_whole(), ErrorKind::kInvalidArgument, .where = "decoding",
                  .what = "a model that is cut into pipeline stages keeps no cache", .want = "--pp 1",
                  .fix = "generate with --pp 1; a checkpoint is read in any layout");
    RANKLAB_CHECK(sequences > 0 && positions > 0 && positions <= config_.seq_length, ErrorKind::kInvalidArgument,
                  .where = "decoding", .what = "the cache does not fit the model",
                  .got = strprintf("%lld sequences, %lld positions", static_cast<long long>(sequences),
                                   static_cast<long long>(positions)),
                  .want = strprintf("1 or more, 1 to %lld (--seq-length)", static_cast<long long>(config_.seq_length)),
                  .fix = "ask for fewer tokens");
    const NoCostScope no_cost;
    auto cache = std::make_unique<DecodeCache>();
    cache->sequences = sequences;
    cache->capacity = positions;
    const auto options = at::TensorOptions(registry_.dtype()).device(registry_.device());
    for (const TransformerBlock& block : stages_[0].blocks)
      cache->layers.push_back(block.attention().make_cache(sequences, positions, options));
    return cache;
  }

  at::Tensor decode(DecodeCache& cache, const at::Tensor& tokens_BS) override {
    check_tokens(tokens_BS, config_);
    const at::NoGradGuard no_grad;
    const WholeSequenceScope whole;
    const int64_t seq = tokens_BS.size(1);
    RANKLAB_CHECK(tokens_BS.size(0) == cache.sequences && cache.positions + seq <= cache.capacity,
                  ErrorKind::kInvalidArgument, .where = "decoding", .what = "the tokens do not fit the cache",
                  .got = strprintf("%lld sequences, %lld tokens behind %lld", static_cast<long long>(tokens_BS.size(0)),
                                   static_cast<long long>(seq), static_cast<long long>(cache.positions)),
                  .want = strprintf("%lld, at most %lld in all", static_cast<long long>(cache.sequences),
                                    static_cast<long long>(cache.capacity)),
                  .fix = "begin a new cache with the last tokens");
    const Stage& stage = stages_[0];
    ResidualStream stream = gated_use(embedding_part(stage), {}, [&](ResidualStream) {
      at::Tensor x_SBH = (*embedding_)(tokens_BS.t());
      if (position_ != nullptr) x_SBH = x_SBH + position_->data.narrow(0, cache.positions, seq).unsqueeze(1);
      return ResidualStream{x_SBH, {}};
    });
    const Batch batch{.tokens_BS = tokens_BS, .targets_BS = {}};
    for (size_t i = 0; i < stage.blocks.size(); ++i) {
      stream = gated_use(block_part(stage, i), stream, [&](ResidualStream own) {
        stage.blocks[i].decode(own, batch, cache.layers[i]);
        return own;
      });
    }
    cache.positions += seq;
    const auto last = [&](const at::Tensor& x_SBH) { return x_SBH.narrow(0, seq - 1, 1); };
    return gated(last_part(stage), {last(stream.x_SBH), last(stream.branch_SBH)},
                 [&](const GatedTensors& in) -> GatedTensors {
                   const NormOutput state = (*final_norm_)(in[0], in[1]);
                   return {all_logits((*head_)(state), last_token(tokens_BS)).squeeze(1)};
                 })[0];
  }

  void set_parameter_gate(ParameterGate* gate) override { gate_ = gate; }

  double take_mtp_loss_sum() override {
    const NoCostScope no_cost;
    double sum = 0;
    for (const at::Tensor& loss : mtp_losses_) sum += loss.item<double>();
    mtp_losses_.clear();
    return sum;
  }

 private:
  struct Stage {
    StageLayers layers;
    std::vector<TransformerBlock> blocks;
    std::vector<Parameter*> parameters;
  };

  void add_stage(const StageLayers& layers) {
    const size_t before = registry_.parameters().size();
    Stage stage{.layers = layers, .blocks = {}, .parameters = {}};
    const bool knows_embedding = embedding_.has_value();  // on this rank's other end: a tied head
    if (layers.is_first) add_embedding();
    stage.blocks.reserve(static_cast<size_t>(layers.end_layer - layers.first_layer));
    for (int64_t layer = layers.first_layer; layer < layers.end_layer; ++layer)
      stage.blocks.emplace_back(registry_, config_, block_place("layers." + std::to_string(layer), layer));
    if (layers.is_last) add_head();
    if (layers.is_last && config_.mtp_num_layers > 0) add_mtp();
    const std::vector<Parameter*> all = registry_.parameters();
    stage.parameters.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
    const bool uses_embedding = layers.is_first || (layers.is_last && (config_.tie_embeddings || mtp_.has_value()));
    if (knows_embedding && uses_embedding) stage.parameters.push_back(registry_.find("embedding.weight"));
    stages_.push_back(std::move(stage));
  }

  BlockPlace block_place(const std::string& name, int64_t layer) const {
    return {.name = name,
            .layer = layer,
            .rope = rope_,
            .local_rope = local_rope_,
            .tp = tp_,
            .kv = kv_,
            .attention_again = recompute_.selective(),
            .moe = moe_.get()};
  }

  void make_embedding() {
    if (embedding_) return;
    embedding_.emplace(registry_, "embedding", config_.vocab_size, config_.hidden_size,
                       Init{InitKind::kNormal, config_.init_std}, tp_,
                       config_.scale_embeddings ? std::sqrt(static_cast<double>(config_.hidden_size)) : 1.0);
  }

  void add_embedding() {
    make_embedding();
    if (config_.position == PositionKind::kRope) return;
    position_ = &registry_.create("position.weight", replicated({config_.seq_length, config_.hidden_size}),
                                  {InitKind::kNormal, config_.init_std}, true);
    position_->sum_grad_over_tp = tp_.sharded_sequence();
  }

  void add_head() {
    final_norm_.emplace(registry_, "final_norm", config_, tp_.sharded_sequence());
    if (config_.tie_embeddings) make_embedding();
    head_.emplace(registry_, config_, config_.tie_embeddings ? &embedding_->weight() : nullptr, tp_);
  }

  void add_mtp() {
    make_embedding();
    mtp_.emplace(registry_, config_, block_place("", 0), *embedding_, *head_, recompute_.covers_mtp());
  }

  bool is_whole() const { return stages_.size() == 1 && stages_[0].layers.is_first && stages_[0].layers.is_last; }
  static Batch last_token(const at::Tensor& tokens_BS) {
    return {.tokens_BS = tokens_BS.slice(1, -1), .targets_BS = {}};
  }

  // What uses which units (ParameterGate), and what comes after it in forward and in backward; nothing without a gate.
  GatedPart embedding_part(const Stage& stage) const {
    if (gate_ == nullptr) return {};
    return {gate_, {"embedding"}, stage.blocks.empty() ? "final" : layer_name(config_, stage.layers.first_layer), ""};
  }
  GatedPart block_part(const Stage& stage, size_t index, size_t count = 1) const {
    if (gate_ == nullptr) return {};
    const int64_t layer = stage.layers.first_layer + static_cast<int64_t>(index);
    const int64_t after = layer + static_cast<int64_t>(count);
    const bool more = after < stage.layers.end_layer;
    const std::string next = more ? layer_name(config_, after) : (stage.layers.is_last ? "final" : "");
    GatedPart part{gate_, {}, next, index > 0 ? layer_name(config_, layer - 1) : ""};
    for (int64_t l = layer; l < after; ++l) part.units.push_back(layer_name(config_, l));
    return part;
  }
  GatedPart last_part(const Stage& stage) const {
    if (gate_ == nullptr) return {};
    GatedPart part{gate_, {}, "", stage.blocks.empty() ? "" : layer_name(config_, stage.layers.end_layer - 1)};
    if (config_.tie_embeddings || mtp_) part.units.emplace_back("embedding");
    for (int64_t k = 0; k < config_.mtp_num_layers; ++k) part.units.push_back("mtp." + std::to_string(k));
    part.units.emplace_back("final");
    return part;
  }
  template <typename Use>
  static ResidualStream gated_use(const GatedPart& part, const ResidualStream& stream, const Use& use) {
    const GatedTensors out =
        gated(part, {stream.x_SBH, stream.branch_SBH}, [&](const GatedTensors& in) -> GatedTensors {
          const ResidualStream result = use({in[0], in[1]});
          return {result.x_SBH, result.branch_SBH};
        });
    return {out[0], out[1]};
  }
  ResidualStream gated_embed(const Stage& stage, const Batch& batch, StageResult result) const {
    return gated_use(embedding_part(stage), {}, [&](ResidualStream) { return embed(batch, result); });
  }

  // What follows the last layer.
  at::Tensor finish(const ResidualStream& stream, const Batch& batch, StageResult result, double probability,
                    const DropoutPlace& place) {
    const NormOutput state = (*final_norm_)(stream.x_SBH, stream.branch_SBH);
    const at::Tensor logits_SBV = (*head_)(state);
    if (result == StageResult::kLogits) return all_logits(logits_SBV, batch);
    const at::Tensor main_loss = loss(logits_SBV, batch);
    if (!mtp_ || !at::GradMode::is_enabled()) return main_loss;
    const at::Tensor further = mtp_->loss_sum(state.normed, batch, probability, place);
    mtp_losses_.push_back(further.detach());
    return with_further_loss(main_loss, further, config_.mtp_loss_weight / static_cast<double>(config_.mtp_num_layers));
  }

  int64_t local_positions(int64_t positions) const {
    return tp_.sharded_sequence() ? positions / tp_.size() : positions;
  }
  // Causal attention: padding at the end changes nothing before it, so any length works with sequence parallelism.
  int64_t padded(int64_t positions) const {
    const int64_t multiple = tp_.sharded_sequence() ? tp_.size() : 1;
    return (positions + multiple - 1) / multiple * multiple;
  }
  int64_t first_position(int64_t local) const { return tp_.sharded_sequence() ? tp_.rank() * local : 0; }
  DropoutPlace dropout_place(const Batch& batch, int64_t local) const {
    return {registry_.seed(), static_cast<uint64_t>(batch.step), batch.first_sample, first_position(local),
            config_.seq_length};
  }

  TokenPlace token_place(const Batch& batch, StageResult result) const {
    return {batch.step, batch.first_sample, config_.seq_length, training_ && result == StageResult::kLoss};
  }

  ResidualStream embed(const Batch& batch, StageResult result) const {
    check_tokens(batch.tokens_BS, config_);
    at::Tensor tokens_BS = batch.tokens_BS;
    const int64_t seq = tokens_BS.size(1);
    RANKLAB_CHECK(result == StageResult::kLogits || padded(seq) == seq, ErrorKind::kInvalidArgument,
                  .where = "sequence parallelism", .what = "the sequence does not divide by the tensor-parallel size",
                  .got = strprintf("%lld positions over %d ranks", static_cast<long long>(seq), tp_.size()),
                  .want = strprintf("a multiple of %d", tp_.size()),
                  .fix = "change the length of the sequences or --tp");
    if (padded(seq) > seq) tokens_BS = at::constant_pad_nd(tokens_BS, {0, padded(seq) - seq});
    ResidualStream stream{(*embedding_)(tokens_BS.t()), {}};
    if (position_ != nullptr) {
      const int64_t local = local_positions(padded(seq));
      stream.x_SBH = stream.x_SBH + position_->data.narrow(0, first_position(local), local).unsqueeze(1);
    }
    return stream;
  }

  at::Tensor loss(const at::Tensor& logits_SBV, const Batch& batch) const {
    RANKLAB_CHECK(batch.targets_BS.dim() == 2 && batch.targets_BS.numel() == logits_SBV.size(0) * logits_SBV.size(1),
                  ErrorKind::kInvalidArgument, .where = "transformer", .what = "tokens and targets differ in shape",
                  .got = strprintf("%lld targets", static_cast<long long>(batch.targets_BS.numel())),
                  .want = strprintf("%lld", static_cast<long long>(logits_SBV.size(0) * logits_SBV.size(1))));
    return vocab_parallel_cross_entropy(logits_SBV.view({-1, logits_SBV.size(2)}), batch.targets_BS.t().reshape({-1}),
                                        head_->partition(), tp_);
  }

  at::Tensor all_logits(const at::Tensor& local_SBV, const Batch& batch) const {
    at::Tensor logits_SBV = local_SBV.narrow(0, 0, batch.tokens_BS.size(1));
    if (tp_.active()) {
      const at::Tensor logits_VSB = tp_.comm->all_gather(logits_SBV.permute({2, 0, 1}).contiguous());
      logits_SBV = logits_VSB.narrow(0, 0, config_.vocab_size).permute({1, 2, 0});
    }
    return logits_SBV.transpose(0, 1).contiguous();
  }

  ModelConfig config_;
  TensorParallel tp_;
  Communicator* kv_;  // of the ranks that share a key/value head; null: none does
  RecomputePolicy recompute_;
  ParameterRegistry registry_;
  QuantizerBook quantizers_;
  std::unique_ptr<MoePlace> moe_;  // null without experts
  RopeTable rope_;
  RopeTable local_rope_;  // of layers with a window
  std::optional<VocabParallelEmbedding> embedding_;
  Parameter* position_ = nullptr;
  std::vector<Stage> stages_;
  std::optional<Norm> final_norm_;
  std::optional<OutputHead> head_;
  std::optional<MultiTokenPrediction> mtp_;
  std::vector<at::Tensor> mtp_losses_;  // not yet taken
  ParameterGate* gate_ = nullptr;
  bool training_ = true;
};

}  // namespace

std::unique_ptr<CausalLm> make_transformer(const ModelConfig& config, RankContext& context,
                                           const TransformerOptions& options) {
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
  return std::make_unique<Transformer>(config, context, options);
}

}  // namespace ranklab

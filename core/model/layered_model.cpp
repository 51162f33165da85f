#include "core/model/layered_model.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/base/text.h"
#include "core/model/decode_cache.h"
#include "core/model/module_use.h"
#include "core/model/recompute.h"
#include "core/parallel/parameter_gate.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

const ModelUnit kEmbedding{.name = "embedding", .place = ModelUnit::Place::kFirst};
const ModelUnit kFinal{};
const ModelUnit kMtp{.name = "mtp", .place = ModelUnit::Place::kMtp};

std::string layer_name(int64_t layer) { return "layers." + std::to_string(layer); }

std::vector<StageLayers> stages_or_whole(const ModelConfig& config, const LayeredOptions& options) {
  if (!options.stages.empty()) return options.stages;
  return {{.first_layer = 0, .end_layer = config.num_layers, .is_first = true, .is_last = true}};
}

ContextParallel context_parallel(RankContext& context, const ContextSplit& split) {
  const auto group = [&](Axis axis) { return context.size(axis) > 1 ? &context.comm(axis) : nullptr; };
  ContextParallel cp{group(Axis::kCp), split};
  if (cp.active() && split.uses(ContextExchange::kAllToAllP2p)) {
    cp.heads = &context.comm(Axis::kCpHeads);
    cp.ring = &context.comm(Axis::kCpRing);
  }
  return cp;
}

uint64_t seed_of(const LayeredOptions& options, const RankContext& context) {
  const bool of_replica = injected(InjectedBug::kReplicaInit);
  return options.seed + (of_replica ? static_cast<uint64_t>(context.coordinate(Axis::kDpReplica)) : 0);
}

class LayeredModel : public CausalLm {
 public:
  LayeredModel(const ModelConfig& config, RankContext& context, const LayeredOptions& options, const MakeStack& make)
      : config_(config),
        tp_{&context.comm(Axis::kTp), options.sequence_parallel, options.tp_comm_overlap},
        cp_(context_parallel(context, options.context)),
        recompute_(options.recompute),
        mtp_part_(options.mtp_part),
        registry_(seed_of(options, context), options.dtype, context.device()),
        quantizers_(options.quantization, context, options.seed),
        embedding_use_(ModuleScope(registry_, "embedding")),
        head_use_(ModuleScope(registry_, "head")) {
    if (options.values_later) registry_.make_values_later();
    if (options.quantization.policy) registry_.set_quantizers(&quantizers_);
    stack_ = make({registry_, context, tp_, cp_, options});
    RANKLAB_CHECK(
        !cp_.active() || stack_->splits_sequences(), ErrorKind::kInvalidArgument, .where = "model",
        .what = "--cp gives each rank a part of every sequence, and this model does not say that it can use one",
        .got = "--cp " + std::to_string(cp_.size()), .want = "1",
        .fix = "override LayerStack::splits_sequences(), or leave --cp out");
    for (const StageLayers& layers : stages_or_whole(config, options)) add_stage(layers);
  }

  ParameterRegistry& registry() override { return registry_; }
  void set_training(bool training) override { training_ = training; }
  void set_parameter_gate(ParameterGate* gate) override { gate_ = gate; }

  std::vector<std::pair<std::string, at::Tensor>> buffers() override {
    std::vector<std::pair<std::string, at::Tensor>> result = quantizers_.buffers();
    for (auto& buffer : stack_->buffers()) result.push_back(std::move(buffer));
    return result;
  }
  ModelReport end_step() override {
    quantizers_.end_step();
    return stack_->end_step();
  }
  double take_mtp_loss_sum() override { return stack_->take_mtp_loss_sum(); }
  MaxLogitBook* max_logits() override { return stack_->max_logits(); }

  at::Tensor loss_sum(const Batch& batch) override { return forward_stage(0, {}, batch, StageResult::kLoss); }
  at::Tensor logits(const Batch& batch) override { return forward_stage(0, {}, batch, StageResult::kLogits); }

  int num_stages() const override { return static_cast<int>(stages_.size()); }
  std::vector<Parameter*> stage_parameters(int stage) override {
    return stages_.at(static_cast<size_t>(stage)).parameters;
  }
  std::vector<int64_t> boundary_shape(int part, int64_t sequences, int64_t tokens, StageResult result) const override {
    const bool ahead = mtp_part_ >= 0 && part >= mtp_part_;
    return {(ahead ? states_ahead(result) : 1) * local_positions(tokens, result), sequences, config_.hidden_size};
  }

  at::Tensor forward_stage(int index, const at::Tensor& input, const Batch& batch, StageResult result) override {
    const Stage& stage = stages_.at(static_cast<size_t>(index));
    const c10::AutoGradMode grad(at::GradMode::is_enabled() && result == StageResult::kLoss);
    const bool first = stage.layers.is_first;
    const ForwardContext context =
        context_of(batch, result,
                   first ? local_positions(batch.tokens_BS.size(1), result) : input.size(0) / states_of(stage, result));
    const ResidualStream stream = run_layers(stage, first ? embed(stage, context) : ResidualStream{input}, context);
    if (stage.layers.looks_ahead) return look_ahead(stage, stream, context);
    return stage.layers.is_last ? predict(stage, stream, context) : stream.sum();
  }

  bool can_decode() const override { return is_whole() && stack_->can_decode(); }

  std::unique_ptr<DecodeCache> begin_decoding(int64_t sequences, int64_t positions) override {
    if (!stack_->can_decode()) return CausalLm::begin_decoding(sequences, positions);
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
    for (int64_t layer = 0; layer < config_.num_layers; ++layer)
      cache->layers.push_back(stack_->make_cache(layer, sequences, positions, options));
    return cache;
  }

  at::Tensor decode(DecodeCache& cache, const at::Tensor& tokens_BS) override {
    const at::NoGradGuard no_grad;
    RANKLAB_CHECK(tokens_BS.dim() == 2 && tokens_BS.size(0) == cache.sequences &&
                      cache.positions + tokens_BS.size(1) <= cache.capacity,
                  ErrorKind::kInvalidArgument, .where = "decoding", .what = "the tokens do not fit the cache",
                  .got = strprintf("tokens %s after %lld", shape_text(tokens_BS.sizes().vec()).c_str(),
                                   static_cast<long long>(cache.positions)),
                  .want = strprintf("%lld sequences, at most %lld positions in all",
                                    static_cast<long long>(cache.sequences), static_cast<long long>(cache.capacity)),
                  .fix = "begin a new cache with the last tokens");
    const Stage& stage = stages_[0];
    const int64_t seq = tokens_BS.size(1);
    ForwardContext context;
    context.batch = {.tokens_BS = tokens_BS, .targets_BS = {}};
    context.result = StageResult::kLogits;
    context.tokens.whole_sequence = true;
    context.cache = &cache;
    const ResidualStream stream = run_layers(stage, embed(stage, context), context);
    cache.positions += seq;
    const auto last = [&](const at::Tensor& x_SBH) { return x_SBH.defined() ? x_SBH.narrow(0, seq - 1, 1) : x_SBH; };
    context.batch.tokens_BS = tokens_BS.slice(1, -1);
    return predict(stage, {last(stream.x_SBH), last(stream.branch_SBH)}, context).squeeze(1);
  }

 private:
  struct Stage {
    StageLayers layers;
    std::vector<Parameter*> parameters;
    std::vector<std::string> last_units;  // units used by the head or by the modules after the layers
  };

  void add_stage(const StageLayers& layers) {
    Stage stage{.layers = layers, .parameters = {}, .last_units = {}};
    // Shared parameters that another stage of this rank has already created.
    std::vector<Parameter*> known;
    for (const std::string& name : shared_with(layers)) {
      if (Parameter* parameter = registry_.find(name)) known.push_back(parameter);
    }
    const size_t before = registry_.parameters().size();
    if (layers.is_first) make(kEmbedding, [&] { stack_->make_embedding(); });
    for (int64_t layer = layers.first_layer; layer < layers.end_layer; ++layer) {
      make({layer_name(layer), ModelUnit::Place::kLayer, layer}, [&] { stack_->make_layer(layer); });
      layer_uses_.emplace(layer, ModuleScope(registry_, layer_name(layer)));
    }
    const size_t before_head = registry_.parameters().size();
    if (layers.looks_ahead) make(kMtp, [&] { stack_->make_mtp(); });
    if (layers.is_last) make(kFinal, [&] { stack_->make_head(); });
    const std::vector<Parameter*> all = registry_.parameters();
    mark_shared(stack_->shared_parameters(), &ModelUnit::used_by_last);
    mark_shared(stack_->mtp_shared_parameters(), &ModelUnit::used_by_mtp);
    stage.parameters.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
    stage.parameters.insert(stage.parameters.end(), known.begin(), known.end());
    if (layers.looks_ahead || layers.is_last)
      stage.last_units = units_behind(all, before_head, layers.is_last ? kFinal : kMtp, !shared_with(layers).empty());
    stages_.push_back(std::move(stage));
  }

  // The embedding's parameters that this stage uses and that other stages use, too.
  std::vector<std::string> shared_with(const StageLayers& layers) const {
    std::vector<std::string> shared;
    if (layers.is_first || layers.is_last) shared = stack_->shared_parameters();
    if (!layers.is_first && !layers.looks_ahead) return shared;
    for (std::string& name : stack_->mtp_shared_parameters())
      if (std::ranges::find(shared, name) == shared.end()) shared.push_back(std::move(name));
    return shared;
  }

  void mark_shared(const std::vector<std::string>& names, bool ModelUnit::*used) {
    for (const std::string& name : names) {
      Parameter* parameter = registry_.find(name);
      if (parameter == nullptr) continue;
      if (parameter->unit.name != kEmbedding.name) parameter->unit = kEmbedding;
      parameter->unit.*used = true;
    }
  }

  template <typename Make>
  void make(ModelUnit unit, const Make& parts) {
    const ModelUnit around = registry_.begin_unit(std::move(unit));
    parts();
    registry_.begin_unit(around);
  }

  static std::vector<std::string> units_behind(const std::vector<Parameter*>& all, size_t from, const ModelUnit& own,
                                               bool shares) {
    std::vector<std::string> units;
    if (shares) units.push_back(kEmbedding.name);
    for (size_t i = from; i < all.size(); ++i) {
      const std::string& unit = all[i]->unit.name;
      if (unit != own.name && std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
    }
    units.push_back(own.name);
    return units;
  }

  // The number of states that look_ahead() returns, and that a later stage gets as input.
  int64_t states_ahead(StageResult result) const {
    return result == StageResult::kLoss && at::GradMode::is_enabled() ? 1 + stack_->mtp_modules() : 1;
  }
  int64_t states_of(const Stage& stage, StageResult result) const {
    return stage.layers.behind_mtp ? states_ahead(result) : 1;
  }

  bool is_whole() const { return stages_.size() == 1 && stages_[0].layers.is_first && stages_[0].layers.is_last; }

  ForwardContext context_of(const Batch& batch, StageResult result, int64_t local) const {
    const int64_t group_positions = local * (tp_.sharded_sequence() ? tp_.size() : 1);
    const std::shared_ptr<const SequencePart> part = splits(result) ? part_of(group_positions) : nullptr;
    return {.batch = batch,
            .result = result,
            .dropout = training_ ? config_.dropout : 0.0,
            .attention_dropout = training_ ? config_.attention_dropout : 0.0,
            .tokens = {.step = batch.step,
                       .first_sample = batch.first_sample,
                       .seq_length = config_.seq_length,
                       .trains = training_ && result == StageResult::kLoss,
                       .positions = part != nullptr ? part->positions : nullptr,
                       .random_offset = batch.random_offset},
            .first_position = tp_.sharded_sequence() ? tp_.rank() * local : 0,
            .seed = dropout_seed(),
            .part = part};
  }

  uint64_t dropout_seed() const {
    const bool own = injected(InjectedBug::kDropoutSeedPerRank);
    return registry_.seed() + (own ? static_cast<uint64_t>(tp_.rank()) : 0);
  }

  // With causal attention, padding at the end does not change the positions before it, so any length works with
  // sequence parallelism.
  int64_t local_positions(int64_t tokens, StageResult result) const {
    if (splits(result)) {
      sequence_part(tokens, cp_.size(), cp_.rank(), cp_.split.balance);  // throws if it does not divide
      tokens /= cp_.size();
    }
    return tp_.sharded_sequence() ? (tokens + tp_.size() - 1) / tp_.size() : tokens;
  }

  // Logits are computed for whole sequences, on every context-parallel rank.
  bool splits(StageResult result) const { return cp_.active() && result == StageResult::kLoss; }

  // `own`: the number of positions of a sequence that this rank has.
  std::shared_ptr<const SequencePart> part_of(int64_t own) const {
    if (part_ != nullptr && part_->seq_length == own * cp_.size()) return part_;
    const NoCostScope once;
    SequencePart part{.seq_length = own * cp_.size()};
    for (int rank = 0; rank < cp_.size(); ++rank)
      part.of_ranks.push_back(std::make_shared<const std::vector<int64_t>>(positions_of(cp_.part(own, rank))));
    part.positions = part.of_ranks.at(static_cast<size_t>(cp_.rank()));
    part.index = on_device(*part.positions);
    if (TypeWatch* watch = type_watch_of_thread) watch->is_part(part.index, Axis::kCp);
    if (cp_.ring != nullptr) {
      const ContextParallel ring = cp_.ring_of_neighbours();
      part.exchanged = on_device(positions_of(ring.part(own * cp_.heads->size(), ring.rank())));
      if (TypeWatch* watch = type_watch_of_thread) watch->is_part(part.exchanged, Axis::kCpRing);
    }
    part_ = std::make_shared<const SequencePart>(std::move(part));
    return part_;
  }
  at::Tensor on_device(const std::vector<int64_t>& positions) const {
    const at::Tensor index = at::empty({static_cast<int64_t>(positions.size())}, at::kLong);
    std::copy(positions.begin(), positions.end(), index.mutable_data_ptr<int64_t>());
    return index.to(registry_.device());
  }

  ResidualStream embed(const Stage& stage, const ForwardContext& context) {
    GatedPart part;
    if (gate_ != nullptr) part = {gate_, {kEmbedding.name}, unit_of_layer(stage, stage.layers.first_layer), ""};
    return gated_use(
        part, {}, [&](ResidualStream) { return embedding_use_(context, {}, [&] { return stack_->embed(context); }); });
  }

  void run_layer(int64_t layer, ResidualStream& stream, const ForwardContext& context) {
    const at::Tensor input = stream.branch_SBH.defined() ? stream.branch_SBH : stream.x_SBH;
    layer_uses_.at(layer)(context, input, [&] {
      stack_->run_layer(layer, stream, context);
      return stream;
    });
  }

  ResidualStream run_layers(const Stage& stage, ResidualStream stream, const ForwardContext& context) {
    const int64_t first = stage.layers.first_layer, layers = stage.layers.end_layer - first;
    for (int64_t i = 0, count = 0; i < layers; i += count) {
      const int64_t recomputed_layers = recompute_.piece(i, layers);
      count = std::max<int64_t>(recomputed_layers, 1);
      const Piece piece = [this, begin = first + i, end = first + i + count](ResidualStream& s,
                                                                             const ForwardContext& c) {
        for (int64_t layer = begin; layer < end; ++layer) run_layer(layer, s, c);
      };
      stream = gated_use(layers_part(stage, first + i, count), stream, [&](ResidualStream own) {
        recomputed_layers > 0 ? recomputed(piece, own, context) : piece(own, context);
        return own;
      });
    }
    return stream;
  }

  at::Tensor predict(const Stage& stage, const ResidualStream& stream, const ForwardContext& context) {
    return behind_layers(stage, stream, [&](const ResidualStream& own, const at::Tensor& last) {
      return head_use_(context, last, [&] { return stack_->predict(own, context); });
    });
  }

  at::Tensor look_ahead(const Stage& stage, const ResidualStream& stream, const ForwardContext& context) {
    return behind_layers(
        stage, stream, [&](const ResidualStream& own, const at::Tensor&) { return stack_->look_ahead(own, context); });
  }

  template <typename Use>
  at::Tensor behind_layers(const Stage& stage, const ResidualStream& stream, const Use& use) {
    GatedPart part;
    if (gate_ != nullptr) part = {gate_, stage.last_units, "", unit_of_layer(stage, stage.layers.end_layer - 1)};
    return gated(part, {stream.x_SBH, stream.branch_SBH}, [&](const GatedTensors& in) -> GatedTensors {
      return {use(ResidualStream{in[0], in[1]}, in[1].defined() ? in[1] : in[0])};
    })[0];
  }

  // The unit of a layer; past the last layer, the unit of the head or of the modules; "" if the stage has neither.
  static std::string unit_of_layer(const Stage& stage, int64_t layer) {
    if (layer >= stage.layers.first_layer && layer < stage.layers.end_layer) return layer_name(layer);
    if (layer < stage.layers.end_layer || (!stage.layers.is_last && !stage.layers.looks_ahead)) return "";
    return stage.layers.is_last ? kFinal.name : kMtp.name;
  }

  // The units that these layers use (ParameterGate), and the units used next in forward and in backward; empty without
  // a gate.
  GatedPart layers_part(const Stage& stage, int64_t layer, int64_t count) const {
    if (gate_ == nullptr) return {};
    GatedPart part{gate_, {}, unit_of_layer(stage, layer + count), unit_of_layer(stage, layer - 1)};
    for (int64_t l = layer; l < layer + count; ++l) part.units.push_back(layer_name(l));
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

  ModelConfig config_;
  TensorParallel tp_;
  ContextParallel cp_;
  mutable std::shared_ptr<const SequencePart> part_;  // for the last sequence length
  RecomputePolicy recompute_;
  int mtp_part_;
  ParameterRegistry registry_;
  QuantizerBook quantizers_;
  std::unique_ptr<LayerStack> stack_;
  std::vector<Stage> stages_;
  ModuleUse embedding_use_, head_use_;
  std::map<int64_t, ModuleUse> layer_uses_;
  ParameterGate* gate_ = nullptr;
  bool training_ = true;
};

}  // namespace

std::unique_ptr<CausalLm> make_layered_model(const ModelConfig& config, RankContext& context,
                                             const LayeredOptions& options, const MakeStack& make) {
  return std::make_unique<LayeredModel>(config, context, options, make);
}

}  // namespace ranklab

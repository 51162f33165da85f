#include "core/model/moe_layer.h"

#include <optional>

#include "core/base/injected_bug.h"
#include "core/model/experts.h"
#include "core/model/layer_stack.h"
#include "core/model/module_use.h"
#include "core/nn/router.h"
#include "core/parallel/expert/balance_loss.h"
#include "core/parallel/expert/capacity.h"
#include "core/parallel/expert/delayed_weight_grads.h"
#include "core/parallel/expert/tensor_split.h"
#include "core/parallel/expert/wire_rows.h"
#include "core/parallel/tensor/replicated_linear.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// Logits of the router or of the shared experts' gate: [..., H] -> [..., outputs] in router_dtype(). bias: null, none.
at::Tensor gate_logits(const at::Tensor& x, const Parameter& gate, const Parameter* bias = nullptr) {
  const at::ScalarType dtype = router_dtype(x.scalar_type());
  const at::Tensor logits = at::linear(x.to(dtype), gate.data.to(dtype));
  return bias != nullptr ? logits + bias->data.to(dtype) : logits;
}

class MoeLayer : public MlpLayer {
 public:
  MoeLayer(const ModuleScope& scope, const MoeSpec& spec, const ModelConfig& c, int64_t layer, MoeContext& context,
           TensorParallel tp, ContextParallel cp)
      : uses_(scope),
        moe_(c.moe),
        seq_length_(c.seq_length),
        layer_(layer),
        shares_weights_(c.repeats_layer(layer)),
        // The gradients of several uses of a weight are one sum, so they are computed together.
        delays_weight_grads_(context.delay_weight_grads && !shares_weights_),
        moe_context_(context),
        tp_(tp),
        cp_(cp),
        router_(scope.make_weight(spec.router)),
        router_bias_(scope.make_bias(spec.router)),
        shared_(spec.shared ? make_dense_mlp(scope["shared"], *spec.shared, c.activation, tp) : nullptr),
        shared_gate_(spec.shared_gate ? &scope.make_weight(*spec.shared_gate) : nullptr),
        latent_down_(projection(scope, spec.latent_down, tp)),
        latent_up_(projection(scope, spec.latent_up, tp)),
        experts_(scope["experts"], spec.expert, c, context.rank_context.comm(Axis::kEp),
                 context.rank_context.comm(Axis::kEtp), shares_weights_) {
    router_.sum_grad_over_tp = tp.sharded_sequence();
    if (router_bias_ != nullptr) router_bias_->sum_grad_over_tp = tp.sharded_sequence();
    if (shared_gate_ != nullptr) shared_gate_->sum_grad_over_tp = tp.sharded_sequence();
    bias_E_ = context.book.bias(layer, router_dtype(scope.registry().dtype()));
  }

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) override {
    const at::Tensor tokens_TH = x.normed.reshape({-1, x.normed.size(-1)});
    Routing routing;
    uses_.router(context, tokens_TH, [&] {
      routing = route(tokens_TH, x.normed.size(1), context);
      return routing.weights_TK;
    });
    std::unique_ptr<ExpertTrip> trip;
    at::Tensor shared;
    const auto compute_shared = [&] { shared = shared_output(x, context); };
    const bool overlaps = shared_ != nullptr && moe_context_.overlap_shared;
    const auto delayed = delays_weight_grads_ ? std::make_shared<DelayedWeightGrads>() : nullptr;
    WorkBeside beside(overlaps ? std::function<void()>(compute_shared) : nullptr,
                      delayed ? std::function<void()>([delayed] { delayed->run(); }) : nullptr);
    const at::Tensor read_TL = latent_down_ ? (*latent_down_)(x, context.tokens).flatten(0, 1) : tokens_TH;
    uses_.dispatch(context, read_TL, [&] {
      const at::Tensor sent_TH = moe_.weigh_inputs ? weighed(read_TL, routing) : read_TL;
      trip = moe_context_.dispatcher->dispatch(round_rows(sent_TH, moe_context_.wire), routing, &beside);
      return trip->rows();
    });
    const at::Tensor outputs = uses_.experts(context, trip->rows(), [&] {
      // Returning an empty tensor without a gradient makes backward skip this rank's exchanges.
      if (injected(InjectedBug::kEmptyExpertSkips) && trip->rows().size(0) == 0) return at::empty_like(trip->rows());
      const EtpTokens arrived(moe_context_.rank_context.comm(Axis::kEtp), *trip);
      const at::Tensor own = arrived.own_outputs(experts_(arrived.rows(), arrived.counts(), context.tokens));
      if (delayed && !beside.has_backward() && trip->rows().requires_grad()) delayed->delay_between(trip->rows(), own);
      return own;
    });
    at::Tensor routed = uses_.combine(context, outputs, [&] {
      return trip->combine(outputs).view({x.normed.size(0), x.normed.size(1), -1});
    });
    if (latent_up_) routed = (*latent_up_)(routed, context.tokens);
    if (!shared_) return routed;
    if (!shared.defined()) compute_shared();
    return routed + shared;
  }

 private:
  static std::optional<ReplicatedLinear> projection(const ModuleScope& scope, const std::optional<ModuleSpec>& spec,
                                                    const TensorParallel& tp) {
    if (!spec) return std::nullopt;
    return ReplicatedLinear(scope, *spec, tp);
  }

  at::Tensor shared_output(const NormOutput& x, const ForwardContext& context) const {
    const at::Tensor output = uses_.shared(context, x.normed, [&] { return shared_->forward(x, context); });
    if (shared_gate_ == nullptr) return output;
    const at::Tensor gate = at::sigmoid(gate_logits(x.normed, *shared_gate_));
    return output * gate.to(output.scalar_type());
  }

  // Each token times the weight of its only expert; the weight is then not applied to the output.
  static at::Tensor weighed(const at::Tensor& tokens_TH, Routing& routing) {
    const at::Tensor sent_TH = (tokens_TH * routing.weights_TK).to(tokens_TH.scalar_type());
    const NoCostScope free;
    routing.weights_TK = at::ones_like(routing.weights_TK);
    return sent_TH;
  }

  Routing route(const at::Tensor& tokens_TH, int64_t sequences, const ForwardContext& context) {
    const at::Tensor logits_TE = gate_logits(tokens_TH, router_, router_bias_);
    ExpertChoice choice = choose_experts(logits_TE, bias_E_, moe_);
    if (moe_.force_balance) {
      const at::Tensor in_turn = experts_in_turn(token_numbers(tokens_TH, sequences, context), moe_);
      choice.experts_TK = typed_as(in_turn, choice.experts_TK);
      choice.weights_TK = expert_weights(choice.scores_TE, choice.experts_TK, moe_);
    }
    Routing routing{choice.experts_TK, choice.weights_TK, {}, moe_.num_experts};
    // Text is scored and generated without dropping tokens, so that a token's logits do not depend on the tokens after
    // it, on other sequences or on padding.
    if (moe_.capacity_factor > 0 && context.result == StageResult::kLoss) {
      const PositionGroups groups = position_groups(sequences, context);
      routing.kept_TK = within_capacity(choice.experts_TK, choice.weights_TK, moe_, groups);
      if (moe_context_.pad) routing.slots = most_kept(tokens_TH.size(0), moe_, groups);
    }
    const bool trains = at::GradMode::is_enabled() || context.pass == RecomputePass::kFirst;
    if (trains) add_losses(routing, choice, logits_TE, sequences, context);
    return routing;
  }

  // Token numbers belong to no tokens. A type checker learns whose they are from the experts that the router chose.
  static at::Tensor typed_as(const at::Tensor& in_turn, const at::Tensor& chosen) {
    if (type_watch_of_thread == nullptr) return in_turn;
    const NoCostScope free;
    return in_turn + chosen * 0;
  }

  // The global indices of the tokens, so that round-robin experts are the same in every layout.
  at::Tensor token_numbers(const at::Tensor& tokens_TH, int64_t sequences, const ForwardContext& context) const {
    const int64_t positions = tokens_TH.size(0) / sequences;
    const int64_t before = context.cache != nullptr ? context.cache->positions : 0;
    const int64_t first = before + (tp_.over(context.tokens).sharded_sequence() ? tp_.rank() * positions : 0);
    const auto options = at::TensorOptions(at::kLong).device(tokens_TH.device());
    const at::Tensor position_S = context.part != nullptr ? context.part->index.narrow(0, first, positions)
                                                          : at::arange(first, first + positions, options);
    const at::Tensor sequence_B =
        at::arange(context.batch.first_sample, context.batch.first_sample + sequences, options);
    return (sequence_B.unsqueeze(0) * seq_length_ + position_S.unsqueeze(1)).reshape({-1});
  }

  PositionGroups position_groups(int64_t sequences, const ForwardContext& context) const {
    return {.sp = tp_.over(context.tokens).sharded_sequence() ? tp_.comm : nullptr,
            .cp = context.part != nullptr ? cp_ : ContextParallel{},
            .sequences = sequences};
  }

  void add_losses(Routing& routing, const ExpertChoice& choice, const at::Tensor& logits_TE, int64_t sequences,
                  const ForwardContext& context) {
    ExpertBook::Forward seen{routing, context.batch.is_recorded()};
    if (moe_.balancing != LoadBalancing::kNone) {
      const at::Tensor loss = balance_loss_sum(choice, moe_, balance_groups(sequences, context)) * moe_.aux_loss_coeff;
      seen.aux_loss_sum = loss;
      routing.weights_TK = attached(routing.weights_TK, loss, context.batch);
    }
    if (moe_.z_loss_coeff > 0) {
      const at::Tensor loss = z_loss_sum(logits_TE) * moe_.z_loss_coeff;
      seen.z_loss_sum = loss;
      routing.weights_TK = attached(routing.weights_TK, loss, context.batch);
    }
    if (context.pass != RecomputePass::kRecompute) moe_context_.book.add(layer_, seen);
  }

  static at::Tensor attached(const at::Tensor& weights_TK, const at::Tensor& loss, const Batch& batch) {
    if (batch.is_recorded()) return attach_loss(weights_TK, loss * batch.recorded_balance_scale, 1);
    return attach_loss(weights_TK, loss, batch.balance_scale);
  }

  BalanceGroups balance_groups(int64_t sequences, const ForwardContext& context) const {
    BalanceGroups groups{.sequences = sequences, .per_sequence = moe_.balancing == LoadBalancing::kSeqAuxLoss};
    const PositionGroups positions = position_groups(sequences, context);
    if (positions.sp != nullptr) groups.groups.push_back(positions.sp);
    if (positions.cp.active()) groups.groups.push_back(positions.cp.comm);
    if (moe_.balancing == LoadBalancing::kGlobalAuxLoss)
      groups.groups.push_back(&moe_context_.rank_context.comm(Axis::kDp));
    for (const Communicator* group : groups.groups) groups.ranks *= group->size();
    return groups;
  }

  struct Uses {
    explicit Uses(const ModuleScope& scope)
        : router(scope["router"]),
          dispatch(scope["dispatch"]),
          experts(scope["experts"]),
          combine(scope["combine"]),
          shared(scope["shared"]) {}
    ModuleUse router, dispatch, experts, combine, shared;
  };
  Uses uses_;
  MoeConfig moe_;
  int64_t seq_length_;
  int64_t layer_;
  bool shares_weights_, delays_weight_grads_;
  MoeContext& moe_context_;
  TensorParallel tp_;
  ContextParallel cp_;
  Parameter& router_;
  Parameter* router_bias_;  // null: none
  std::unique_ptr<MlpLayer> shared_;
  Parameter* shared_gate_ = nullptr;
  std::optional<ReplicatedLinear> latent_down_, latent_up_;
  Experts experts_;
  at::Tensor bias_E_;
};

}  // namespace

MoeContext::MoeContext(const ModelConfig& config, RankContext& rank, const LayeredOptions& options)
    : rank_context(rank),
      dispatcher(make_dispatcher(options.moe_dispatcher, {.ep = &rank.comm(Axis::kEp),
                                                          .num_experts = config.moe.num_experts,
                                                          .moe = config.moe,
                                                          .gpus_per_node = rank.gpus_per_node(),
                                                          .wire = options.quantization.dispatch})),
      book(config, rank),
      wire(options.quantization.dispatch),
      overlap_shared(options.overlap_shared_experts),
      delay_weight_grads(options.delay_weight_grads),
      pad(options.pad_experts) {}

std::unique_ptr<MlpLayer> make_moe_layer(const ModuleScope& scope, const ModelConfig& config, int64_t layer,
                                         MoeContext& context, TensorParallel tp, ContextParallel cp) {
  return std::make_unique<MoeLayer>(scope, moe_spec(config), config, layer, context, tp, cp);
}

}  // namespace ranklab

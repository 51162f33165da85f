#include "core/parity/one_rank_layer.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/config/one_rank.h"
#include "core/config/pipeline_layout.h"
#include "core/nn/initial_values.h"
#include "core/nn/scalar_type.h"
#include "core/parity/epsilon.h"
#include "core/parity/rank_recorder.h"
#include "core/parity/rounding/one_unit.h"
#include "core/sim/aten.h"
#include "core/sim/unseen_scope.h"

namespace ranklab {

constexpr int kStages = 3;  // what comes before the layer, the layer, what comes after it

// A group of one rank: its collectives return at once and never reach this class.
class Alone final : public Communicator {
 public:
  explicit Alone(Group group) : Communicator(std::move(group)) {}
  WorkPtr post(Call) override {
    throw Error(ErrorKind::kInternal,
                {.where = "one rank's layer", .what = "a layer that is computed alone calls other ranks"});
  }
};

class MiddleStage final : public Endpoint {
 public:
  explicit MiddleStage(c10::Device device) : device_(device) {}
  int global_rank() const override { return 1; }
  int world_size() const override { return kStages; }
  c10::Device device() const override { return device_; }
  CommunicatorPtr communicator(const Group& group) override { return std::make_shared<Alone>(group); }

 private:
  c10::Device device_;
};

namespace {

// The plan of one microbatch on one rank, for a model in three stages.
RunPlan plan_of(const RunPlan& whole) {
  TrainConfig c = on_one_rank(whole.config);
  c.sentinels = {};
  RunPlan plan = resolve(c);
  c = plan.config;
  c.parallel = {.world = kStages, .pp = kStages};
  plan.mesh = DeviceMesh(c.parallel);
  plan.schedule = resolve_schedule(c, kStages);
  plan.config.global_batch_size = plan.micro_batch_size = whole.micro_batch_size;
  plan.num_microbatches = 1;
  plan.ramp = {};
  plan.zero_stage = 3;  // so that parameters have no memory until they are given their values
  return plan;
}

// The whole tensor, flat; nothing if a part is missing.
std::optional<at::Tensor> assembled(const TensorPieces& all, const TensorKey& key) {
  const auto found = all.find(key);
  if (found == all.end()) return {};
  const TensorPiece& first = found->second.front();
  const at::Tensor values = at::zeros({first.slice.global_elements()}, first.value.options());
  const at::Tensor known = at::zeros({values.numel()}, at::kBool);
  for (const TensorPiece& piece : found->second) {
    const at::Tensor index = piece.slice.index(), real = index.ge(0), places = index.masked_select(real);
    values.index_copy_(0, places, piece.value.masked_select(real));
    known.index_fill_(0, places, true);
  }
  if (!known.all().item<bool>()) return {};
  return values;
}

}  // namespace

struct OneRankLayer::Place {
  Place(const RunPlan& whole, c10::Device device)
      : plan(plan_of(whole)), endpoint(device), ctx(endpoint, plan.mesh, {.virtual_time = false, .trace = false}) {}
  RunPlan plan;
  MiddleStage endpoint;
  RankContext ctx;
};

OneRankLayer::OneRankLayer(const RunPlan& plan, std::shared_ptr<ModelProvider> provider, c10::Device device)
    : place_(std::make_unique<Place>(plan, device)), provider_(std::move(provider)) {}
OneRankLayer::~OneRankLayer() = default;

namespace {

// Fills the model's parameters and buffers. RETURNS: false if a part is missing.
bool fill(CausalLm& model, const LayerCase& layer, uint64_t perturb) {
  for (Parameter* parameter : model.registry().parameters()) {
    const auto values = assembled(layer.pieces, {layer.step, ParityPhase::kWeights, parameter->name, "weight"});
    if (!values || values->numel() != parameter->data.numel()) return false;
    if (perturb > 0)
      move_by_one_unit(*values, parameter_slice(*parameter), epsilon_of(values->scalar_type()),
                       RandomStream(perturb, RandomPurpose::kTest, parameter->name));
    set_values(*parameter, values->to(parameter->data.device()));
  }
  for (const auto& [name, buffer] : model.buffers()) {
    const auto values = assembled(layer.pieces, {layer.step, ParityPhase::kWeights, name, "buffer"});
    if (values && values->numel() == buffer.numel()) buffer.view({-1}).copy_(*values);
  }
  return true;
}

}  // namespace

std::optional<ParityRecord> OneRankLayer::run(const LayerCase& layer, uint64_t perturb) const {
  const UnseenScope unseen;
  const InjectedBugs none{std::span<const InjectedBug>()};
  RunPlan& plan = place_->plan;
  const int64_t layers = plan.config.model.num_layers;
  plan.stage_layers = {layer.layer, 1, layers - layer.layer - 1};
  auto input = assembled(layer.pieces, layer.input), grad = assembled(layer.pieces, layer.grad);
  if (!input || !grad) return {};
  const std::vector<int64_t> shape = layer.pieces.at(layer.input).front().slice.shape;
  if (perturb > 0)
    move_by_one_unit(*input, whole_slice(shape), epsilon_of(input->scalar_type()),
                     RandomStream(perturb, RandomPurpose::kTest, "input"));
  const std::unique_ptr<CausalLm> model = provider_->build_model(place_->ctx, plan);
  if (!fill(*model, layer, perturb)) return {};

  ParityRecorder recorder(plan, 0, 0);
  place_->ctx.tracer().set_step(static_cast<int>(layer.step));
  place_->ctx.tracer().set_microbatch(0);
  recorder.set_filter([](const TensorKey& key) {
    return key.kind != "grad" && (key.phase == ParityPhase::kForward || key.phase == ParityPhase::kBackward);
  });
  recorder.start(place_->ctx, *model, nullptr);
  recorder.begin_step();
  model->registry().hooks().set(recorder, true);
  const at::AutoGradMode with_grad(true);
  const c10::Device device = place_->ctx.device();
  const at::Tensor x_SBH = input->view(shape).to(device).requires_grad_(true);
  const at::Tensor y_SBH = model->forward_stage(0, x_SBH,
                                                {.tokens_BS = {},
                                                 .targets_BS = {},
                                                 .first_sample = layer.first_sample,
                                                 .step = layer.step,
                                                 .documents = layer.documents,
                                                 .balance_scale = layer.balance_scale},
                                                StageResult::kLoss);
  torch::autograd::backward({y_SBH}, {grad->view(shape).to(device)});
  ParityRecord record{.title = "one rank", .type = scalar_type(plan.config.element_dtype()), .mesh = ParityMesh()};
  recorder.hand_over(record);
  return record;
}

}  // namespace ranklab

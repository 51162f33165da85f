#include "core/model/expert_book.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/injected_bug.h"
#include "core/comm/purpose.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"
#include "core/trace/routing_event.h"

namespace ranklab {
namespace {

enum Extra { kDropped, kAux, kZ, kExtras };

Event instant(RankContext& context, std::string_view name, int64_t layer) {
  Event event;
  event.kind = EventKind::kInstant;
  event.name = context.tracer().intern(name);
  event.tag = static_cast<int32_t>(layer);
  event.virtual_begin_ns = context.clock().now_ns();
  event.wall_begin_ns = wall_now_ns();
  return event;
}

// Entropy of the experts' shares divided by that of equal shares; 1 without tokens, or with one expert.
double spread_of(const std::vector<double>& counts, double sum) {
  double entropy = 0;
  for (const double count : counts)
    if (count > 0) entropy -= count / sum * std::log(count / sum);
  return sum > 0 && counts.size() > 1 ? entropy / std::log(static_cast<double>(counts.size())) : 1;
}

}  // namespace

std::string name_of_bias(const ModelConfig& c, int64_t layer) {
  const bool predicts = layer >= c.num_layers;
  return (predicts ? "mtp." + std::to_string(layer - c.num_layers) + ".block" : "layers." + std::to_string(layer)) +
         ".mlp.router.bias";
}

ExpertBook::ExpertBook(const ModelConfig& config, RankContext& context)
    : config_(config), context_(context), num_layers_(config.num_layers + config.mtp_modules()) {}

bool ExpertBook::stays_on_device(const Forward& forward) const {
  if (forward.recorded) return true;
  return context_.device().is_cuda() && !context_.tracer().enabled() && type_watch_of_thread == nullptr;
}

void ExpertBook::add_on_device(int64_t layer, const Forward& forward) {
  const at::NoGradGuard no_grad;
  const int64_t experts = config_.moe.num_experts;
  if (!on_device_.defined()) {
    const MemoryScope memory(MemoryCategory::kBuffers);
    on_device_ = at::zeros({num_layers_, experts + kExtras}, at::TensorOptions(at::kDouble).device(context_.device()));
  }
  const at::Tensor row = on_device_.select(0, layer);
  row.narrow(0, 0, experts).add_(device_counts_by_expert(forward.routing));
  const auto add = [&](Extra extra, const at::Tensor& number) { row.select(0, experts + extra).add_(number); };
  if (forward.routing.kept_TK.defined()) add(kDropped, forward.routing.kept_TK.logical_not().sum());
  if (forward.aux_loss_sum.defined()) add(kAux, forward.aux_loss_sum);
  if (forward.z_loss_sum.defined()) add(kZ, forward.z_loss_sum);
}

void ExpertBook::add(int64_t layer, const Forward& forward) {
  const NoCostScope free;
  own_layers_.insert(layer);
  if (stays_on_device(forward)) return add_on_device(layer, forward);
  Layer& entry = layers_[layer];
  const std::vector<int64_t> counts = count_by_expert(forward.routing);
  const at::Tensor& kept = forward.routing.kept_TK;
  const double dropped = kept.defined() ? kept.logical_not().sum().item<double>() : 0;
  entry.counts.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) entry.counts[i] += static_cast<double>(counts[i]);
  entry.dropped += dropped;
  if (forward.aux_loss_sum.defined()) entry.aux += forward.aux_loss_sum.item<double>();
  if (forward.z_loss_sum.defined()) entry.z += forward.z_loss_sum.item<double>();
  if (!context_.tracer().enabled()) return;
  Event event = instant(context_, kRoutingEvent, layer);
  event.value = dropped;
  context_.tracer().record(event, {counts.begin(), counts.end()});
}

at::Tensor ExpertBook::bias(int64_t layer, at::ScalarType dtype) {
  if (!config_.moe.expert_bias) return {};
  at::Tensor& bias = biases_[layer];
  if (!bias.defined()) {
    const NoCostScope free;
    bias = at::zeros({config_.moe.num_experts}, at::TensorOptions(dtype).device(context_.device()));
  }
  return bias;
}

// Every rank has a row for every layer, with zeros for layers of other stages. After the sum all pipeline ranks know
// all layers, and both copies of a layer (DualPipe) update their bias identically.
at::Tensor ExpertBook::own() const {
  const NoCostScope free;
  if (on_device_.defined() && layers_.empty()) return on_device_;
  const int64_t experts = config_.moe.num_experts, width = experts + kExtras;
  at::Tensor table = at::zeros({num_layers_, width}, at::kDouble);
  for (const auto& [layer, entry] : layers_) {
    double* row = table.mutable_data_ptr<double>() + layer * width;
    std::copy(entry.counts.begin(), entry.counts.end(), row);
    row[experts + kDropped] = entry.dropped;
    row[experts + kAux] = entry.aux;
    row[experts + kZ] = entry.z;
  }
  table = table.to(context_.device());
  if (on_device_.defined()) table.add_(on_device_);
  if (TypeWatch* watch = type_watch_of_thread) watch->is_same_over(table, {});
  return table;
}

at::Tensor ExpertBook::over_ranks(at::Tensor table) const {
  const PurposeScope scope(Purpose::kRouting);
  for (const Axis axis : {Axis::kTp, context_.replica_axis(), Axis::kPp}) {
    if (context_.size(axis) > 1) table = context_.comm(axis).all_reduce(table);
  }
  return table;
}

// The direction is the sign of mean minus count. Both are multiplied by the number of experts, which makes them whole
// numbers, exact on every device.
void ExpertBook::update_biases(const at::Tensor& table) {
  const NoCostScope free;
  for (const auto& [layer, bias] : biases_) {
    if (!own_layers_.contains(layer)) continue;
    if (TypeWatch* watch = type_watch_of_thread)
      watch->expect_same(table, {Axis::kTp, context_.replica_axis()}, name_of_bias(config_, layer));
    const at::Tensor counts = table.select(0, layer).narrow(0, 0, config_.moe.num_experts);
    const at::Tensor step = (counts.sum() - counts * counts.numel()).sign_().mul_(config_.moe.bias_update_rate);
    bias.add_(step.to(bias.scalar_type()));
  }
}

void ExpertBook::record(int64_t layer, const Layer& total) const {
  if (!context_.tracer().enabled()) return;
  Event load = instant(context_, kExpertLoadEvent, layer);
  load.value = total.dropped;
  context_.tracer().record(load, total.counts);
  const auto bias = biases_.find(layer);
  if (bias == biases_.end()) return;
  const at::Tensor values = bias->second.to(at::kCPU, at::kDouble).contiguous();
  const double* first = values.const_data_ptr<double>();
  context_.tracer().record(instant(context_, kExpertBiasEvent, layer), {first, first + values.numel()});
}

ModelReport ExpertBook::end_step() {
  const bool local = injected(InjectedBug::kBiasLocalLoad);
  const at::Tensor mine = own(), all = over_ranks(local ? mine.clone() : mine);  // the sum is in place
  update_biases(local ? mine : all);
  const NoCostScope free;
  const at::Tensor table = all.to(at::kCPU);  // the host waits for the device
  const int64_t experts = config_.moe.num_experts, width = experts + kExtras;
  ModelReport report;
  double worst = 0, assignments = 0, dropped = 0;
  for (int64_t layer = 0; layer < num_layers_; ++layer) {
    if (!config_.is_moe_layer(layer)) continue;
    const double* row = table.const_data_ptr<double>() + layer * width;
    const Layer total{{row, row + experts}, row[experts + kDropped], row[experts + kAux], row[experts + kZ]};
    const double sum = std::accumulate(total.counts.begin(), total.counts.end(), 0.0);
    const double most = *std::max_element(total.counts.begin(), total.counts.end());
    if (sum > 0) worst = std::max(worst, most * static_cast<double>(experts) / sum);
    const auto dead = static_cast<double>(std::count(total.counts.begin(), total.counts.end(), 0.0));
    if (sum > 0) report.dead_fraction = std::max(report.dead_fraction, dead / static_cast<double>(experts));
    report.load_entropy = std::min(report.load_entropy, spread_of(total.counts, sum));
    assignments += sum + total.dropped;
    dropped += total.dropped;
    report.aux_loss_sum += total.aux;
    report.z_loss_sum += total.z;
    if (own_layers_.contains(layer)) record(layer, total);
  }
  report.max_over_mean_load = worst;
  report.dropped_fraction = assignments > 0 ? dropped / assignments : 0;
  layers_.clear();
  if (on_device_.defined()) on_device_.zero_();
  return report;
}

}  // namespace ranklab

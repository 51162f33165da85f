#include "core/model/expert_book.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/injected_bug.h"
#include "core/comm/purpose.h"
#include "core/sim/aten.h"
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

// Stands for numbers that each rank has counted itself.
at::Tensor counted_here() {
  const NoCostScope free;
  const at::Tensor source = at::empty({0});
  if (TypeWatch* watch = type_watch_of_thread) watch->is_same_over(source, {});
  return source;
}

// Entropy of the shares over that of equal shares; 1 without tokens, or with one expert.
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
    : config_(config), context_(context), num_layers_(config.num_layers + config.mtp_num_layers) {}

void ExpertBook::add(int64_t layer, const Forward& forward) {
  Layer& entry = layers_[layer];
  entry.counts.resize(forward.counts.size());
  for (size_t i = 0; i < forward.counts.size(); ++i) entry.counts[i] += static_cast<double>(forward.counts[i]);
  entry.dropped += static_cast<double>(forward.dropped);
  entry.aux += forward.aux_loss_sum;
  entry.z += forward.z_loss_sum;
  if (type_watch_of_thread != nullptr) entry.source = counted_here();
  if (!context_.tracer().enabled()) return;
  Event event = instant(context_, kRoutingEvent, layer);
  event.value = static_cast<double>(forward.dropped);
  context_.tracer().record(event, {forward.counts.begin(), forward.counts.end()});
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

// Every rank has a row for every layer, zeros for the layers of other stages: after the sum all pipeline ranks know all
// layers, and both copies of a layer (DualPipe) update their bias identically.
at::Tensor ExpertBook::summed() const {
  const int64_t experts = config_.moe.num_experts, width = experts + kExtras;
  at::Tensor table;
  {
    const NoCostScope free;
    table = at::zeros({num_layers_, width}, at::kDouble);
    for (const auto& [layer, entry] : layers_) {
      double* row = table.mutable_data_ptr<double>() + layer * width;
      std::copy(entry.counts.begin(), entry.counts.end(), row);
      row[experts + kDropped] = entry.dropped;
      row[experts + kAux] = entry.aux;
      row[experts + kZ] = entry.z;
    }
    table = table.to(context_.device());
    if (TypeWatch* watch = type_watch_of_thread) watch->is_same_over(table, {});
  }
  const PurposeScope scope(Purpose::kRouting);
  for (const Axis axis : {Axis::kTp, context_.replica_axis(), Axis::kPp}) {
    if (context_.size(axis) > 1) table = context_.comm(axis).all_reduce(table);
  }
  const NoCostScope free;
  return table.to(at::kCPU);
}

void ExpertBook::update_bias(int64_t layer, const Layer& total) {
  const auto known = biases_.find(layer);
  if (known == biases_.end()) return;
  if (TypeWatch* watch = type_watch_of_thread; watch != nullptr && total.source.defined())
    watch->expect_same(total.source, {Axis::kTp, context_.replica_axis()}, name_of_bias(config_, layer));
  const NoCostScope free;
  const double mean =
      std::accumulate(total.counts.begin(), total.counts.end(), 0.0) / static_cast<double>(total.counts.size());
  std::vector<double> step;
  for (const double count : total.counts) {
    const double side = count < mean ? 1 : (count > mean ? -1 : 0);
    step.push_back(side * config_.moe.bias_update_rate);
  }
  known->second.add_(at::tensor(step, at::kDouble).to(known->second.options()));
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
  const at::Tensor table = summed();
  const NoCostScope free;
  const int64_t experts = config_.moe.num_experts, width = experts + kExtras;
  ModelReport report;
  double worst = 0, assignments = 0, dropped = 0;
  for (int64_t layer = 0; layer < num_layers_; ++layer) {
    if (!config_.is_moe_layer(layer)) continue;
    const double* row = table.const_data_ptr<double>() + layer * width;
    const Layer total{{row, row + experts}, row[experts + kDropped], row[experts + kAux], row[experts + kZ], table};
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
    if (layers_.contains(layer)) {
      update_bias(layer, injected(InjectedBug::kBiasLocalLoad) ? layers_.at(layer) : total);
      record(layer, total);
    }
  }
  report.max_over_mean_load = worst;
  report.dropped_fraction = assignments > 0 ? dropped / assignments : 0;
  layers_.clear();
  return report;
}

}  // namespace ranklab

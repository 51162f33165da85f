#include "core/parallel/quantized/quantizer_book.h"

#include <algorithm>
#include <set>

#include "core/comm/event_now.h"
#include "core/parallel/quantized/precision_numbers.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/spec/amax_history.h"

namespace ranklab {
namespace {

constexpr int64_t kRoles = 3;

// "layers.3" for "layers.3.mlp.experts.7.down".
std::string layer_of(const std::string& module) { return module.substr(0, module.find('.', module.find('.') + 1)); }

std::vector<std::string> keys_of(const std::map<std::string, at::Tensor>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace

QuantizerBook::QuantizerBook(QuantizationSettings settings, RankContext& rank, uint64_t seed)
    : settings_(std::move(settings)), rank_(rank), seed_(seed), hadamard_(seed) {}

LinearQuantizer* QuantizerBook::make(const std::string& module, const LinearForm& form, at::ScalarType type) {
  const ModulePrecision* precision = settings_.policy ? settings_.policy->find(module) : nullptr;
  if (precision == nullptr) return nullptr;
  if (!precision->linear.quantized() && dtype_of(type) == precision->compute) return nullptr;
  ModulePrecision own = *precision;
  // Tokens that were dispatched in a quantized form are not quantized again for the product.
  if (form.dispatched && own.linear.quantized() && settings_.dispatch.quantized())
    own.linear.activation = settings_.dispatch;
  quantizers_.push_back(std::make_unique<LinearQuantizer>(*this, own, form));
  return quantizers_.back().get();
}

bool QuantizerBook::delayed() const {
  return settings_.policy && scales_are_delayed(settings_.policy->recipe().linear);
}

// The modules of the whole model that use delayed scaling, sorted.
std::vector<std::string> QuantizerBook::delayed_modules() const {
  std::vector<std::string> modules;
  for (const ModulePrecision& module : settings_.policy->modules())
    if (scales_are_delayed(module.linear)) modules.push_back(module.module);
  std::ranges::sort(modules);
  return modules;
}

// Includes all experts of a layer, wherever they are, so that every rank of a stage keeps the same histories.
std::vector<std::string> QuantizerBook::history_modules() const {
  std::set<std::string> layers;
  for (const auto& quantizer : quantizers_) layers.insert(layer_of(quantizer->module()));
  std::vector<std::string> modules = delayed_modules();
  std::erase_if(modules, [&](const std::string& module) { return !layers.contains(layer_of(module)); });
  return modules;
}

float QuantizerBook::delayed_amax(const std::string& module, TensorRole role) const {
  const auto found = history_.find(module);
  if (found == history_.end()) return 0;
  const float* row = found->second.const_data_ptr<float>() + static_cast<int64_t>(role) * settings_.amax_history_len;
  if (settings_.amax_most_recent) return row[0];
  return *std::max_element(row, row + settings_.amax_history_len);
}

at::Tensor QuantizerBook::delayed_amaxes(const std::string& module) const {
  at::Tensor all = at::empty({kRoles}, at::kFloat);
  for (int64_t role = 0; role < kRoles; ++role)
    all.mutable_data_ptr<float>()[role] = delayed_amax(module, static_cast<TensorRole>(role));
  return all;
}

at::Tensor QuantizerBook::device_amax(const std::string& module, TensorRole role, at::Device device) {
  const NoCostScope free;
  at::Tensor& all = device_amax_[module];
  if (!all.defined()) all = delayed_amaxes(module).to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  return all.narrow(0, static_cast<int64_t>(role), 1);
}

void QuantizerBook::make_histories() {
  if (!delayed() || !history_.empty()) return;
  for (const std::string& module : history_modules())
    history_[module] = at::zeros({kRoles, settings_.amax_history_len}, at::kFloat);
}

std::vector<std::pair<std::string, at::Tensor>> QuantizerBook::buffers() {
  make_histories();
  std::vector<std::pair<std::string, at::Tensor>> result;
  for (const auto& [module, history] : history_) result.emplace_back(module + std::string(kAmaxHistorySuffix), history);
  return result;
}

// The largest amaxes [modules, 3] of this step over all ranks that have parts of a module's tensors or copies of the
// module, like Transformer Engine's reduction over its amax reduction group. Zero for modules that this rank lacks.
at::Tensor QuantizerBook::agreed_amax(const std::vector<std::string>& modules) {
  at::Tensor seen = at::zeros({static_cast<int64_t>(modules.size()), kRoles}, at::kFloat);
  for (const auto& quantizer : quantizers_) {
    const auto found = std::lower_bound(modules.begin(), modules.end(), quantizer->module());
    if (found == modules.end() || *found != quantizer->module()) continue;
    const std::array<float, 3> amax = quantizer->take_amax();
    std::copy(amax.begin(), amax.end(), seen.mutable_data_ptr<float>() + (found - modules.begin()) * kRoles);
  }
  seen = seen.to(rank_.device());
  std::vector<Axis> axes = {Axis::kTp, rank_.replica_axis()};
  if (settings_.layers_held_twice) axes.push_back(Axis::kPp);
  for (const Axis axis : axes)
    if (rank_.size(axis) > 1) seen = rank_.comm(axis).all_reduce(seen, ReduceOp::kMax);
  return seen.cpu();
}

void QuantizerBook::end_step() {
  if (!delayed()) return;
  make_histories();
  const NoCostScope free;
  // Over pp, all ranks must reduce the same list of modules, although each has only some of them.
  const std::vector<std::string> modules = settings_.layers_held_twice ? delayed_modules() : keys_of(history_);
  const at::Tensor seen = agreed_amax(modules);
  const float* next = seen.const_data_ptr<float>();
  for (const std::string& module : modules) {
    const auto found = history_.find(module);
    for (int64_t role = 0; role < kRoles; ++role, ++next) {
      if (found == history_.end()) continue;
      float* row = found->second.mutable_data_ptr<float>() + role * settings_.amax_history_len;
      std::copy_backward(row, row + settings_.amax_history_len - 1, row + settings_.amax_history_len);
      // Transformer Engine keeps the old scale if the amax is not finite; the step is lost anyway.
      row[0] = std::isfinite(*next) ? *next : 0;
    }
  }
  for (auto& [module, all] : device_amax_) all.copy_(delayed_amaxes(module));
}

bool QuantizerBook::samples(const TokenContext& tokens) const {
  const int64_t step = tokens.step, interval = settings_.stats_interval;
  if (!tokens.trains || interval <= 0 || !rank_.tracer().enabled()) return false;
  // Also steps 1, 2, 4, ..., so that a run of a few steps has a curve.
  return step % interval == 0 || (step < interval && (step & (step - 1)) == 0);
}

void QuantizerBook::note(TensorRole role, const std::string& module, const NumberFormat& format,
                         const at::Tensor& before, const RoundedOperand& after) {
  const NoCostScope free;
  rank_.tracer().record(event_now(rank_, EventKind::kInstant, precision_event_name(role, module)),
                        precision_numbers(format, before.to(at::kFloat).cpu().contiguous(), after));
}

LinearQuantizer* QuantizerBook::find(const std::string& module) const {
  const auto found = std::ranges::find_if(quantizers_, [&](const auto& one) { return one->module() == module; });
  return found == quantizers_.end() ? nullptr : found->get();
}

LinearQuantizer* make_quantizer(const ModuleScope& scope, const ModuleSpec& spec, const TensorParallel& group,
                                bool dispatched) {
  QuantizerBook* book = scope.registry().quantizers();
  if (book == nullptr) return nullptr;
  if (scope.shares_parameters()) return book->find(scope.parameter_path() + "." + spec.name);
  LinearForm form{.in = spec.shape.at(1),
                  .out = spec.shape.at(0),
                  .out_parts = spec.out_parts,
                  .split = spec.split,
                  .group = group,
                  .dispatched = dispatched};
  if (spec.split == ModuleSplit::kVocabulary) {  // a column split with padding
    form.split = ModuleSplit::kColumn;
    form.out = (form.out + group.size() - 1) / group.size() * group.size();
  }
  return book->make(scope.path_of(spec.name), form, scope.registry().dtype());
}

}  // namespace ranklab

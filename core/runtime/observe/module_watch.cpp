#include "core/runtime/observe/module_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/precision/precision_policy.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr std::array<std::string_view, 5> kModuleTensors = {"input", "output", "grad_output", "grad_input",
                                                            "residual_stream"};

}  // namespace

std::string_view name(ModuleTensor kind) { return kModuleTensors[static_cast<size_t>(kind)]; }

void check_pattern(const std::string& where, const std::string& pattern, const std::vector<std::string>& names,
                   Communicator& world, c10::Device device) {
  const NoCostScope free;
  const auto here = std::ranges::count_if(names, [&](const std::string& one) { return matches(pattern, one); });
  const at::Tensor count = at::full({1}, static_cast<int64_t>(here), at::kLong).to(device);
  if (world.all_reduce(count).item<int64_t>() > 0) return;
  std::vector<std::string> some(names.begin(), names.begin() + std::min<std::ptrdiff_t>(6, std::ssize(names)));
  throw Error(ErrorKind::kInvalidArgument, {.where = where,
                                            .what = "no module or parameter of any rank has such a name",
                                            .got = quote(pattern),
                                            .want = "a name or a glob, for example one of " + join(some, ", ") +
                                                    (names.size() > some.size() ? ", ..." : ""),
                                            .fix = did_you_mean(pattern, names, "'*' takes all of them")});
}

ModuleWatches::ModuleWatches(std::vector<ModuleWatch> watches, RankContext& ctx, const ModuleHooks& hooks,
                             Communicator& world)
    : watches_(std::move(watches)), ctx_(ctx) {
  for (const ModuleWatch& watch : watches_) {
    check_pattern("add_hook", watch.pattern, hooks.paths(), world, ctx.control_device());
    for (const std::string& path : hooks.paths())
      if (matches(watch.pattern, path)) of_path_[path].push_back(&watch);
  }
}

void ModuleWatches::show(const std::string& path, ModulePass pass, ModuleTensor kind, const at::Tensor& tensor) {
  const auto found = of_path_.find(path);
  if (found == of_path_.end()) return;
  const NoCostScope free;
  const at::NoGradGuard no_grad;
  const ModuleCall call{.ctx = ctx_,
                        .path = path,
                        .pass = pass,
                        .kind = kind,
                        .tensor = tensor,
                        .step = step_,
                        .microbatch = ctx_.tracer().microbatch()};
  for (const ModuleWatch* watch : found->second) watch->call(call);
}

void ModuleWatches::before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) {
  show(path, pass, ModuleTensor::kInput, input);
}
void ModuleWatches::after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) {
  show(path, pass, ModuleTensor::kOutput, output);
}
void ModuleWatches::before_backward(const std::string& path, const at::Tensor& grad_output) {
  show(path, ModulePass::kBackward, ModuleTensor::kGradOutput, grad_output);
}
void ModuleWatches::after_backward(const std::string& path, const at::Tensor& grad_input) {
  show(path, ModulePass::kBackward, ModuleTensor::kGradInput, grad_input);
}
void ModuleWatches::residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) {
  show(path, pass, ModuleTensor::kResidualStream, sum);
}

}  // namespace ranklab

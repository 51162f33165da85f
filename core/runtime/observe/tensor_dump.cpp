#include "core/runtime/observe/tensor_dump.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/checkpoint/safetensors.h"
#include "core/config/batch_choice.h"
#include "core/precision/precision_policy.h"
#include "core/runtime/checkpoint/snapshot.h"
#include "core/runtime/observe/activation_slice.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;

// A slice along one dim, and a range of that slice's flat elements.
std::string slice_json(const Parameter& parameter, int64_t begin, int64_t end) {
  const Partition& cut = parameter.partition;
  Json json = {{"global_shape", cut.global_shape}};
  if (!cut.replicated()) {
    json["dim"] = cut.dim;
    json["ranges"] = cut.ranges;
  }
  int64_t elements = 1;
  for (const int64_t size : local_shape(cut)) elements *= size;
  if (begin != 0 || end != elements) json["elements"] = {begin, end};
  return json.dump();
}

// Ascending positions as [first, count, stride] each.
Json runs_of(const std::vector<int64_t>& positions) {
  Json runs = Json::array();
  for (size_t begin = 0; begin < positions.size();) {
    const int64_t stride = begin + 1 < positions.size() ? positions[begin + 1] - positions[begin] : 1;
    size_t end = begin + 1;
    while (end < positions.size() && positions[end] - positions[end - 1] == stride) ++end;
    runs.push_back({positions[begin], static_cast<int64_t>(end - begin), stride});
    begin = end;
  }
  return runs;
}

std::string coordinates_text(const RankContext& ctx) {
  std::string text;
  for (const Axis axis : {Axis::kPp, Axis::kDp, Axis::kCp, Axis::kTp, Axis::kEp, Axis::kEtp}) {
    if (ctx.size(axis) == 1) continue;
    text += (text.empty() ? "" : ", ") + std::string(name(axis)) +
            strprintf(" %d of %d", ctx.coordinate(axis), ctx.size(axis));
  }
  return text.empty() ? "one rank" : text;
}

}  // namespace

void RankDump::add(const std::string& name, const at::Tensor& tensor, const std::string& slice) {
  tensors[name] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true).contiguous();
  order.push_back(name);
  if (!slice.empty()) slices[name] = slice;
}

void RankDump::add(const std::string& kind, const Parameter& parameter, const at::Tensor& elements, int64_t begin,
                   int64_t end) {
  add(kind + "/" + parameter.name, elements, slice_json(parameter, begin, end));
}

std::string write_rank_dump(const std::string& folder, int64_t step, const RankContext& ctx, const RankDump& dump) {
  namespace fs = std::filesystem;
  const std::string where = folder + "/step-" + std::to_string(step);
  std::error_code error;
  fs::create_directories(where, error);
  RANKLAB_CHECK(!error, ErrorKind::kIo, .where = "dump", .what = "cannot create folder " + quote(where),
                .got = error.message(), .fix = "pass a folder you may write to with --log-dir");
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : dump.tensors)
    tensors.push_back({.name = name,
                       .type = tensor_type(tensor.scalar_type()),
                       .shape = tensor.sizes().vec(),
                       .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  SafetensorsWriteOptions options{.durable = false};
  options.metadata = {{"step", std::to_string(step)},
                      {"rank", std::to_string(ctx.global_rank())},
                      {"coordinates", coordinates_text(ctx)},
                      {"writer", "ranklab"},
                      {"order", Json(dump.order).dump()}};
  for (const auto& [name, slice] : dump.slices) options.metadata["slice/" + name] = slice;
  const std::string path = where + "/rank-" + std::to_string(ctx.global_rank()) + ".safetensors";
  try {
    write_safetensors(path, tensors, options);
  } catch (const Error& lost) {
    throw Error(lost.kind(), {.where = "dump",
                              .what = "cannot write the tensors",
                              .got = lost.text().got,
                              .fix = "make room; pass another folder with --log-dir"});
  }
  return path;
}

RankDump state_dump(RankOptimizer& optimizer) {
  const NoCostScope free;
  const at::NoGradGuard no_grad;
  RankDump dump;
  for (const OwnedState& state : optimizer.owned_state()) {
    dump.add("weight", *state.parameter, state.weight, state.begin, state.end);
    for (const auto& [name, moment] : state.moments) dump.add(name, *state.parameter, moment, state.begin, state.end);
  }
  return dump;
}

TensorDump::TensorDump(const RunPlan& plan, RankContext& ctx, CausalLm& model, std::string folder, Communicator& world)
    : plan_(plan),
      ctx_(ctx),
      model_(model),
      folder_(std::move(folder)),
      patterns_(dump_patterns(plan.config.dump_modules)),
      choice_(dump_choice(plan.config.dump_at)) {
  std::vector<std::string> names = model.registry().hooks().paths();
  for (const Parameter* parameter : model.registry().parameters()) names.push_back(parameter->name);
  for (const std::string& pattern : patterns_) check_pattern("--dump", pattern, names, world, ctx.control_device());
}

bool TensorDump::takes(const std::string& name) const {
  return std::ranges::any_of(patterns_, [&](const std::string& pattern) { return matches(pattern, name); });
}

// If a run resumes from a checkpoint, requested steps may lie in the past. That is not an error, because the same
// command line continues the run.
void TensorDump::begin_run(int64_t first_step) {
  choice_ = choice_.in_run_from(first_step);
  if (choice_.last_step < first_step && ctx_.global_rank() == 0)
    log_warning("--dump writes nothing: this run's steps are " + std::to_string(first_step) + " to " +
                std::to_string(steps_of_run(plan_) - 1) + ", and --at ends with step " +
                std::to_string(choice_.last_step));
}

bool TensorDump::begin_step(int64_t step) {
  if (!std::exchange(begun_, true)) begin_run(step);
  step_ = choice_.takes_step(step) && choice_.takes_rank(ctx_.global_rank()) ? step : -1;
  dump_ = {};
  return step_ >= 0;
}

// With a ZeRO stage, gradients and weights are this rank's pieces.
void TensorDump::before_update(const UpdateView& update) {
  if (step_ < 0) return;
  const NoCostScope free;
  const at::NoGradGuard no_grad;
  for (const Parameter* piece : update.pieces) {
    if (!takes(piece->name)) continue;
    if (choice_.forward) dump_.add("weight/" + piece->name, piece->data, "");
    if (choice_.backward) dump_.add("grad/" + piece->name, piece->data.grad() * update.factor, "");
  }
}

void TensorDump::end_step(RankOptimizer& optimizer) {
  if (step_ < 0) return;
  for (const OwnedState& state : optimizer.owned_state()) {
    for (const char* kind : {"weight/", "grad/"}) {
      const std::string name = kind + state.parameter->name;
      if (dump_.tensors.contains(name)) dump_.slices[name] = slice_json(*state.parameter, state.begin, state.end);
    }
  }
  write_rank_dump(folder_, step_, ctx_, std::exchange(dump_, {}));
}

// For this rank's tokens, [positions, sequences, width]; "" for tensors of other shapes.
std::string TensorDump::slice_of(const at::Tensor& tensor, int microbatch) const {
  if (tensor.dim() != 3) return "";
  const auto slice = activation_slice(plan_, ctx_, step_, microbatch, tensor.size(0), tensor.size(1));
  if (!slice) return "";
  return Json({{"global_shape", {plan_.config.model.seq_length, plan_.sequences_of(step_), tensor.size(2)}},
               {"positions", runs_of(slice->positions)},
               {"sequences", {slice->first_sequence, slice->end_sequence}}})
      .dump();
}

void TensorDump::keep(const std::string& path, ModuleTensor kind, const at::Tensor& tensor) {
  const int microbatch = ctx_.tracer().microbatch();
  if (step_ < 0 || !tensor.defined() || !takes(path) || !choice_.takes_microbatch(microbatch)) return;
  const NoCostScope free;
  const at::NoGradGuard no_grad;
  dump_.add(path + "/" + std::string(name(kind)) + "/" + std::to_string(microbatch), tensor,
            slice_of(tensor, microbatch));
}

void TensorDump::before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) {
  if (choice_.forward && pass == ModulePass::kForward) keep(path, ModuleTensor::kInput, input);
}
void TensorDump::after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) {
  if (choice_.forward && pass == ModulePass::kForward) keep(path, ModuleTensor::kOutput, output);
}
void TensorDump::before_backward(const std::string& path, const at::Tensor& grad_output) {
  if (choice_.backward) keep(path, ModuleTensor::kGradOutput, grad_output);
}
void TensorDump::after_backward(const std::string& path, const at::Tensor& grad_input) {
  if (choice_.backward) keep(path, ModuleTensor::kGradInput, grad_input);
}
void TensorDump::residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) {
  if (choice_.forward && pass == ModulePass::kForward) keep(path, ModuleTensor::kResidualStream, sum);
}

}  // namespace ranklab

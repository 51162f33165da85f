#include "cli/common/pipeline_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/common/model_text.h"
#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/config/precision_choice.h"
#include "core/pipeline/simulate.h"
#include "core/pipeline/verify.h"

namespace ranklab {

std::string model_title(const RunPlan& plan, int64_t parameters) {
  const TrainConfig& c = plan.config;
  ModelCounts counts = count_model(c.model, c.model.seq_length);
  // A program may train a model of its own.
  if (parameters != counts.total + counts.mtp) counts = {.total = parameters, .active = parameters};
  return strprintf("%s: %s, %s, hidden %ld, sequence %ld, %s", model_name(c).c_str(), counts_text(counts).c_str(),
                   counted(c.model.num_layers, "layer").c_str(), static_cast<long>(c.model.hidden_size),
                   static_cast<long>(c.model.seq_length), std::string(name(c.element_dtype())).c_str());
}

std::string fp32_hint(const RunPlan& plan) {
  constexpr int64_t kLarge = 1'000'000'000;  // parameters; smaller models are trained in fp32 for exact comparisons
  const TrainConfig& c = plan.config;
  const double in_fp32 = plan.profile.peak_flops_fp32, in_16_bits = plan.profile.peak_flops_16bit;
  const bool alone = c.element_dtype() == DType::kFloat32 && low_precision_cause(plan).empty();
  if (!alone || in_16_bits < 2 * in_fp32 || count_model(c.model, c.model.seq_length).total < kLarge) return "";
  return strprintf("products run in fp32, at %.0f TFLOP/s at most; --bf16 reaches %.0f", in_fp32 * 1e-12,
                   in_16_bits * 1e-12);
}

std::string context_text(const RunPlan& plan) {
  const ContextSplit& split = plan.config.context_split;
  std::string text = split.by_layer.empty() ? std::string(name(split.exchange)) : "by layer";
  if (split.by_layer.empty() && split.exchange == ContextExchange::kAllToAllP2p)
    text = strprintf("a2a between %d, p2p between %d", plan.mesh.size(Axis::kCpHeads), plan.mesh.size(Axis::kCpRing));
  return text + ", " + std::string(name(split.balance));
}

std::string replicas_text(const RunPlan& plan) {
  std::string text = (plan.mesh.size(Axis::kCp) > 1 ? "dp x cp = " : "dp ") + std::to_string(plan.replicas());
  if (const int groups = plan.mesh.size(Axis::kDpReplica); groups > 1)
    text += strprintf(plan.config.diloco.enabled() ? " in %d DiLoCo replicas" : " in %d groups", groups);
  return text;
}

std::string layout_text(const RunPlan& plan, bool with_schedule) {
  const ParallelDims& dims = plan.config.parallel;
  const std::string schedule = with_schedule ? " (" + plan.schedule.name + ")" : "";
  const std::string pipeline = dims.pp > 1 ? strprintf("pp %d", dims.pp) + schedule + " x " : "";
  const std::string context = dims.cp > 1 ? strprintf("cp %d (%s) x ", dims.cp, context_text(plan).c_str()) : "";
  std::string text = pipeline + strprintf("dp %d x ", plan.dp()) + context + strprintf("tp %d", dims.tp);
  if (!plan.config.model.moe.enabled()) return text;
  text += strprintf(", experts edp %d x ep %d", plan.mesh.size(Axis::kEdp), dims.ep);
  return dims.etp > 1 ? text + strprintf(" x etp %d", dims.etp) : text;
}

std::string run_title(const RunPlan& plan) {
  const ModelCounts counts = count_model(plan.config.model, plan.config.model.seq_length);
  return model_title(plan, counts.total + counts.mtp) + "; " + layout_text(plan, true) + ", " +
         counted(plan.num_microbatches, "microbatch", "es") +
         (plan.config.inject.empty() ? "" : "; wrong on purpose: " + plan.config.inject);
}

std::string ramp_text(const RunPlan& plan) {
  if (!plan.ramp.grows()) return "";
  if (!plan.ramp.given.empty()) return "; its size by samples, " + plan.config.rampup_batch_size;
  return strprintf("; from %ld sequences by %ld over the first %ld", static_cast<long>(plan.ramp.start),
                   static_cast<long>(plan.ramp.increment), static_cast<long>(plan.ramp.samples));
}

std::string pipeline_text(const RunPlan& plan) {
  const std::vector<int64_t>& layers = plan.stage_layers;
  const bool even = std::all_of(layers.begin(), layers.end(), [&](int64_t count) { return count == layers[0]; });
  const std::string each =
      even ? "of " + counted(layers[0], "layer") : "of " + join(std::span<const int64_t>(layers), ", ") + " layers";
  const std::string copies = plan.schedule.num_chains() > 1 ? ", the model twice" : "";
  const std::string mtp = plan.mtp_stage >= 0 ? ", MTP in stage " + std::to_string(plan.mtp_stage) : "";
  return plan.schedule.name + ", " + std::to_string(layers.size()) + " stages " + each + mtp + copies +
         strprintf("; bubble %.1f %% of the total where F, B and W take equally long",
                   100 * simulate(plan.schedule, ScheduleCosts{}).bubble_of_total());
}

nlohmann::ordered_json pipeline_json(const RunPlan& plan) {
  const PipelineTimeline timeline = simulate(plan.schedule, ScheduleCosts{});
  nlohmann::ordered_json peaks = nlohmann::ordered_json::array();
  for (const StageMemory& rank : verify_schedule(plan.schedule).memory) peaks.push_back(rank.peak_activations);
  return {{"schedule", plan.schedule.name},
          {"stage_layers", plan.stage_layers},
          {"mtp_stage", plan.mtp_stage < 0 ? static_cast<int>(plan.stage_layers.size()) - 1 : plan.mtp_stage},
          {"rank_of_stage", plan.schedule.rank_of_stage},
          {"bubble_of_total", timeline.bubble_of_total()},
          {"bubble_of_ideal", timeline.bubble_of_ideal()},
          {"peak_activations", peaks}};
}

}  // namespace ranklab

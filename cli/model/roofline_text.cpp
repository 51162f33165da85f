#include "cli/model/roofline_text.h"

#include "cli/model/roofline.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

double reached_tflops(const RooflinePoint& point) { return point.theoretical_flops / point.seconds() * 1e-12; }

std::string row_text(const RooflinePoint& p) {
  return strprintf("  %-8s %9ld %11s %11s %11s %10s %10s %10s %9.1f  %-7s %9.1f %11s\n", name(p.load.phase),
                   static_cast<long>(p.load.sequences), human_count(p.theoretical_flops).c_str(),
                   human_count(p.tensor_flops).c_str(), human_count(p.realizable_flops).c_str(),
                   human_bytes(p.weight_bytes).c_str(), human_bytes(p.activation_bytes).c_str(),
                   human_bytes(p.kv_bytes).c_str(), p.intensity(), p.memory_bound() ? "memory" : "compute",
                   reached_tflops(p), human_count(p.tokens / p.seconds()).c_str());
}

std::string spread_text(const RunPlan& plan, const char* what, const ExpertSpread& spread) {
  const bool experts = plan.config.model.moe.enabled();
  const std::string parts = human_bytes(spread.dense_bytes) +
                            (experts ? " and experts of " + human_bytes(spread.expert_bytes) : std::string()) +
                            (spread.cache_bytes > 0 ? ", cache " + human_bytes(spread.cache_bytes) : std::string());
  std::string verdict;
  if (!experts) {
    verdict = spread.ranks ? "fits one GPU" : "does not fit one GPU";
  } else if (spread.ranks) {
    verdict = strprintf("fits from --ep %ld on", static_cast<long>(*spread.ranks));
  } else {
    verdict = strprintf("fits with no --ep up to %ld", static_cast<long>(plan.config.model.moe.num_experts));
  }
  return strprintf("%-9s %s: %s", what, verdict.c_str(), parts.c_str());
}

nlohmann::ordered_json point_json(const RooflinePoint& p) {
  return {{"phase", name(p.load.phase)},
          {"sequences", p.load.sequences},
          {"length", p.load.length},
          {"tokens", p.tokens},
          {"theoretical_flops", p.theoretical_flops},
          {"tensor_flops", p.tensor_flops},
          {"realizable_flops", p.realizable_flops},
          {"weight_bytes", p.weight_bytes},
          {"activation_bytes", p.activation_bytes},
          {"kv_bytes", p.kv_bytes},
          {"intensity", p.intensity()},
          {"bound", p.memory_bound() ? "memory" : "compute"},
          {"seconds", p.seconds()},
          {"flops_per_s", p.theoretical_flops / p.seconds()},
          {"tokens_per_s", p.tokens / p.seconds()}};
}

nlohmann::ordered_json spread_json(const ExpertSpread& spread) {
  return {{"dense_bytes", spread.dense_bytes},
          {"expert_bytes", spread.expert_bytes},
          {"cache_bytes", spread.cache_bytes},
          {"smallest_ep", spread.ranks ? nlohmann::ordered_json(*spread.ranks) : nlohmann::ordered_json()}};
}

}  // namespace

std::vector<std::string> spread_lines(const RunPlan& plan) {
  return {spread_text(plan, "decoding", smallest_decode_spread(plan)),
          spread_text(plan, "training", smallest_training_spread(plan))};
}

std::string roofline_text(const RunPlan& plan, const Style& style) {
  const DType dtype = plan.config.element_dtype();
  std::string text =
      style.bold("  roofline") +
      strprintf("  %s in %s: %.0f TFLOP/s, %.1f TB/s; above %.0f FLOP/byte arithmetic bounds; length %ld\n",
                plan.profile.title.c_str(), std::string(ranklab::name(dtype)).c_str(),
                plan.profile.peak_flops(dtype) * 1e-12, plan.profile.memory_bandwidth * 1e-12, roofline_knee(plan),
                static_cast<long>(plan.config.model.seq_length));
  text += style.bold(strprintf("  %-8s %9s %11s %11s %11s %10s %10s %10s %9s  %-7s %9s %11s", "phase", "sequences",
                               "FLOP", "in matmuls", "as at peak", "weights", "activ.", "KV", "FLOP/byte", "bound",
                               "TFLOP/s", "tokens/s")) +
          "\n";
  for (const RooflinePoint& point : roofline_points(plan)) text += row_text(point);
  for (const std::string& line : spread_lines(plan)) text += "  " + line + "\n";
  return text +
         style.dim(
             "    how: as if one GPU did all of the model's work; 'as at peak' are the operations at the "
             "peak that take as long") +
         "\n";
}

nlohmann::ordered_json roofline_json(const RunPlan& plan) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const RooflinePoint& point : roofline_points(plan)) points.push_back(point_json(point));
  return {{"hardware", plan.profile.name},
          {"dtype", std::string(ranklab::name(plan.config.element_dtype()))},
          {"peak_flops", plan.profile.peak_flops(plan.config.element_dtype())},
          {"memory_bandwidth", plan.profile.memory_bandwidth},
          {"knee", roofline_knee(plan)},
          {"points", points},
          {"decoding", spread_json(smallest_decode_spread(plan))},
          {"training", spread_json(smallest_training_spread(plan))}};
}

}  // namespace ranklab

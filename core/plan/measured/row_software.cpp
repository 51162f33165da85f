#include "core/plan/measured/row_software.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/plan/measured/row_dates.h"
#include "core/sim/software.h"

namespace ranklab {
namespace {

constexpr const char* kOwn = "ranklab";  // value of `framework` for this project's own runs

// Frameworks, in lower case, whose software is determined by the rest of the row (RowSoftware::name).
constexpr std::array<std::string_view, 5> kByTheRest = {"megatron-lm", "megatron-deepspeed", "pytorch", "pytorch fsdp",
                                                        "torchtitan"};
struct Framework {
  std::string_view name, software;
};
// Frameworks that correspond directly to one software.
constexpr std::array kFrameworks = {Framework{"internevo", "internevo"}, Framework{"nanotron", "nanotron"},
                                    Framework{"llm-foundry", "llm_foundry"}, Framework{"megascale", "megascale"},
                                    Framework{"megatron-lm local", "megatron"}};
// Frameworks for which the release of the container determines how kernels are launched.
constexpr std::array<std::string_view, 3> kOnMegatronCore = {"megatron-core", "megatron-bridge", "nemo"};

}  // namespace

bool RowSoftware::own() const { return framework() == kOwn; }
bool RowSoftware::of_megatron() const { return holds(name(), "mega") || name() == "transformer_engine"; }
bool RowSoftware::of_zero_bubble() const { return holds(source_, "Zero Bubble"); }
bool RowSoftware::torchtitan() const { return holds(source_, "torchtitan") || framework() == "torchtitan"; }
bool RowSoftware::newer() const { return !holds(c_.text("precision"), "fp16"); }

std::string RowSoftware::framework() const { return lower_case(c_.text("framework")); }

std::string RowSoftware::unknown() const {
  const std::string said = framework();
  std::vector<std::string> known(kByTheRest.begin(), kByTheRest.end());
  known.insert(known.end(), kOnMegatronCore.begin(), kOnMegatronCore.end());
  for (const Framework& one : kFrameworks) known.emplace_back(one.name);
  for (const Software& one : software_rows()) known.emplace_back(one.name);
  if (said.empty() || std::ranges::find(known, said) != known.end()) return "";
  const std::string nearest = nearest_name(said, known);
  return "no software of the framework " + c_.text("framework") +
         (nearest.empty() ? "" : " (the nearest is " + nearest + ")") +
         ": take the closest of `plan run --software`, or leave it out";
}

std::string RowSoftware::name() const {
  const std::string techniques = c_.text("techniques"), said = framework();
  if (find_software(said) != nullptr) return said;
  const auto* const own_software = std::ranges::find(kFrameworks, said, &Framework::name);
  if (own_software != kFrameworks.end()) return std::string(own_software->software);
  const bool on_core = std::ranges::find(kOnMegatronCore, said) != kOnMegatronCore.end();
  if (on_core && !c_.has("container")) return "transformer_engine";
  if (of_zero_bubble()) return "megatron_2023";
  if (holds(source_, "Nanotron")) return "nanotron";
  // NeMo's containers from 26.06 on have a Megatron-Core that launches CUDA graphs.
  if (c_.has("container"))
    return release_in(c_.text("container")) >= "26.06" ? "megatron_core_26_06" : "transformer_engine";
  if (said == "megatron-deepspeed" || holds(c_.text("schedule"), "DeepSpeed"))
    return newer() ? "megatron_deepspeed_bf16" : "megatron_deepspeed";
  if (holds(c_.text("system"), "MegaScale")) return "megascale";
  if (!newer()) return "megatron";
  if (holds(techniques, "async TP") || holds(techniques, "AsyncTP")) return "compiled_async_tp";
  // torchtitan's FP8 is only fast when compiled.
  if (c_.is("compile", false) || holds(techniques, "compile") || (torchtitan() && holds(c_.text("precision"), "fp8")))
    return torchtitan() && year_in(source_) >= 2025 ? "compiled_loss" : "compiled";
  if (holds(source_, "Megatron-Core") || holds(source_, "ModelZoo")) return "transformer_engine";
  if (holds(source_, "Megatron") || holds(source_, "MegaScale") || said == "megatron-lm") return "megatron";
  return "eager";
}

}  // namespace ranklab

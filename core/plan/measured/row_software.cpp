#include "core/plan/measured/row_software.h"

#include "core/plan/measured/row_dates.h"

namespace ranklab {
namespace {

constexpr const char* kOwn = "ranklab";  // `framework` of this project's own runs

}  // namespace

bool RowSoftware::own() const { return c_.text("framework") == kOwn; }
bool RowSoftware::of_megatron() const { return holds(name(), "mega") || name() == "transformer_engine"; }
bool RowSoftware::of_zero_bubble() const { return holds(source_, "Zero Bubble"); }
bool RowSoftware::torchtitan() const { return holds(source_, "torchtitan"); }
bool RowSoftware::newer() const { return !holds(c_.text("precision"), "fp16"); }

std::string RowSoftware::name() const {
  const std::string techniques = c_.text("techniques"), framework = c_.text("framework");
  if (own()) return kOwn;
  if (framework == "Megatron-Core") return "transformer_engine";
  if (framework == "Megatron-LM local") return "megatron";
  if (framework == "InternEvo") return "internevo";
  if (of_zero_bubble()) return "megatron_2023";
  if (framework == "Nanotron" || holds(source_, "Nanotron")) return "nanotron";
  if (framework == "llm-foundry") return "llm_foundry";
  // NeMo's containers from 26.06 on, whose Megatron-Core launches graphs of kernels.
  if (c_.has("container"))
    return release_in(c_.text("container")) >= "26.06" ? "megatron_core_26_06" : "transformer_engine";
  if (holds(framework, "Megatron-DeepSpeed") || holds(c_.text("schedule"), "DeepSpeed"))
    return newer() ? "megatron_deepspeed_bf16" : "megatron_deepspeed";
  if (holds(c_.text("system"), "MegaScale")) return "megascale";
  if (!newer()) return "megatron";
  if (holds(techniques, "async TP") || holds(techniques, "AsyncTP")) return "compiled_async_tp";
  // torchtitan's FP8 needs the compiler to be fast.
  if (c_.is("compile", false) || holds(techniques, "compile") || (torchtitan() && holds(c_.text("precision"), "fp8")))
    return torchtitan() && year_in(source_) >= 2025 ? "compiled_loss" : "compiled";
  if (holds(source_, "Megatron-Core") || holds(source_, "ModelZoo")) return "transformer_engine";
  if (holds(source_, "Megatron") || holds(source_, "MegaScale")) return "megatron";
  return "eager";
}

}  // namespace ranklab

#include "cli/config/megatron_precision.h"

#include <string>

#include "core/base/text.h"

namespace ranklab {
namespace {

using Settings = std::vector<ConfigSetting>;

void set(Settings& out, const char* key, const std::string& value, const char* origin) {
  out.push_back({key, value, origin});
}

// Layers at both ends of the model that stay out of 8 or 4 bits; MTP modules come after them.
void first_and_last_layers(const MegatronWords& words, int64_t layers, Settings& out) {
  if (!words.has("--fp8-format") && !words.has("--fp4-format")) return;
  const int64_t first = words.number("--num-layers-at-start-in-bf16", kMostMegatronSize).value_or(1),
                last = words.number("--num-layers-at-end-in-bf16", kMostMegatronSize).value_or(1);
  std::vector<std::string> patterns;
  for (int64_t layer = 0; layer < layers; ++layer)
    if (layer < first || layer >= layers - last) patterns.push_back("layers." + std::to_string(layer) + ".*");
  if (!patterns.empty()) set(out, "precision.exclude", join(patterns, ","), "--first-last-layers-bf16");
}

}  // namespace

Settings read_megatron_precision(const MegatronWords& words, int64_t layers, const char* usual) {
  Settings out;
  if (words.has("--bf16")) set(out, "precision.main_grads_dtype", "fp32", usual);
  if (words.has("--fp16")) {
    for (const char* scale : {"precision.initial_loss_scale", "precision.max_loss_scale"})
      set(out, scale, "4294967296", usual);
    set(out, "precision.min_loss_scale", "1", usual);
    set(out, "precision.loss_scale_window", "1000", usual);
  }
  if (words.has("--first-last-layers-bf16")) first_and_last_layers(words, layers, out);
  const auto format = words.text("--fp8-format");
  if (!format) return out;
  const std::string recipe = words.text("--fp8-recipe").value_or("delayed");
  const char* own = recipe == "delayed"      ? "fp8_delayed"
                    : recipe == "tensorwise" ? "fp8_current"
                    : recipe == "mxfp8"      ? "mxfp8"
                    : recipe == "blockwise"  ? "deepseek_v3"
                                             : nullptr;
  if (own == nullptr)
    refuse_megatron("no such FP8 recipe here", recipe, "delayed, tensorwise, blockwise or mxfp8", "choose another");
  set(out, "precision.recipe", own, words.has("--fp8-recipe") ? "--fp8-recipe" : usual);
  if (recipe == "delayed" || recipe == "tensorwise") set(out, "precision.fp8_format", *format, "--fp8-format");
  if (recipe == "delayed") {
    set(out, "precision.amax_history_len", "1", usual);
    set(out, "precision.amax_compute_algo", "most_recent", usual);
  }
  if (recipe == "blockwise")  // its moments would otherwise have 16 bits
    for (const char* moment : {"precision.exp_avg_dtype", "precision.exp_avg_sq_dtype"})
      set(out, moment, "fp32", usual);
  return out;
}

}  // namespace ranklab

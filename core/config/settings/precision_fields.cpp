// The rows of config_fields() for precision_config.h.
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {
namespace {

void add_modes(FieldRows& rows) {
  rows.flag("precision.fp16", {"--fp16"},
            "fp16 parameters, activations and gradients with loss scaling; fp32 master weights and moments",
            RANKLAB_FIELD(precision.fp16));
  rows.flag("precision.fp8", {"--fp8"}, "GEMMs of linear layers in FP8 (recipe fp8_delayed)",
            RANKLAB_FIELD(precision.fp8));
  rows.flag("precision.fp4", {"--fp4"}, "GEMMs of linear layers in FP4 (recipe nvfp4)", RANKLAB_FIELD(precision.fp4));
  rows.text("precision.fp8_format", {"--fp8-format"},
            "E4M3 everywhere, or hybrid: gradients in E5M2 (auto: the recipe's)", RANKLAB_FIELD(precision.fp8_format),
            {"auto", "e4m3", "hybrid"});
  rows.text("precision.recipe", {"--precision-recipe"},
            "recipe name (ranklab precision recipes), or a TOML file that defines one",
            RANKLAB_FIELD(precision.recipe));
  rows.number("precision.block_size", {"--quantization-block-size"},
              "elements per scale in tiles and blocks (0: the recipe's)", RANKLAB_FIELD(precision.block_size),
              within(0, 1 << 20));
  rows.text("precision.sums", {"--fp8-accumulation"},
            "accumulation of FP8 GEMMs: fp32, 14 bits as on Hopper (hopper), or 14 bits promoted to fp32 "
            "every 128 terms (hopper_promoted)",
            RANKLAB_FIELD(precision.sums), {"auto", "fp32", "hopper", "hopper_promoted"});
}

void add_modules(FieldRows& rows) {
  rows.text("precision.include", {"--low-precision-include"},
            "patterns of modules to quantize, e.g. 'layers.*.mlp.*' (default: all linear layers)",
            RANKLAB_FIELD(precision.include));
  rows.text("precision.exclude", {"--low-precision-exclude"}, "patterns of modules not to quantize",
            RANKLAB_FIELD(precision.exclude));
  rows.text("precision.compute_rules", {"--module-compute-dtype-rule"},
            "PATTERN=DTYPE,...: compute GEMMs of these modules in fp32, bf16 or fp16; the last match wins",
            RANKLAB_FIELD(precision.compute_rules));
  rows.text("precision.compute_override", {"--module-compute-dtype-override"},
            "MODULE=DTYPE,...: the same for exact module names; overrides quantization by the recipe",
            RANKLAB_FIELD(precision.compute_override));
}

void add_states(FieldRows& rows) {
  const std::vector<std::string> dtypes = {"auto", "fp32", "bf16", "fp16"};
  rows.text("precision.main_params_dtype", {"--main-params-dtype"},
            "type of the master weights (auto: the recipe's, else fp32)", RANKLAB_FIELD(precision.main_params_dtype),
            dtypes);
  rows.text("precision.main_grads_dtype", {"--main-grads-dtype"},
            "type in which gradients accumulate (auto: the recipe's, else that of the parameters)",
            RANKLAB_FIELD(precision.main_grads_dtype), dtypes);
  rows.text("precision.exp_avg_dtype", {"--exp-avg-dtype"}, "type of AdamW's first moments",
            RANKLAB_FIELD(precision.exp_avg_dtype), dtypes);
  rows.text("precision.exp_avg_sq_dtype", {"--exp-avg-sq-dtype"}, "type of AdamW's second moments",
            RANKLAB_FIELD(precision.exp_avg_sq_dtype), dtypes);
}

void add_scaling(FieldRows& rows) {
  rows.number("precision.amax_history_len", {"--fp8-amax-history-len"},
              "delayed scaling: number of past steps in the amax history", RANKLAB_FIELD(precision.amax_history_len),
              within(1, 1 << 20));
  rows.text("precision.amax_compute_algo", {"--fp8-amax-compute-algo"},
            "delayed scaling: which amax of the history sets the scale", RANKLAB_FIELD(precision.amax_compute_algo),
            {"max", "most_recent"});
  rows.flag("precision.dispatch", {"--low-precision-dispatch"},
            "dispatch tokens to experts in the recipe's format (default: the recipe's choice)",
            RANKLAB_FIELD(precision.dispatch));
  rows.flag("precision.param_gather", {"--fp8-param-gather"},
            "gather sharded weights in the recipe's format (default: the recipe's choice)",
            RANKLAB_FIELD(precision.param_gather));
  rows.number("precision.stats_interval", {"--precision-stats-interval"},
              "record quantization statistics in the trace every N steps, and at steps 1, 2, 4 ... before N (0: none)",
              RANKLAB_FIELD(precision.stats_interval), count(0));
  rows.number("precision.loss_scale", {"--loss-scale"}, "constant loss scale (0: dynamic in fp16, else none)",
              RANKLAB_FIELD(precision.loss_scale), at_least(0, "above 0 (0: none is given)"));
  rows.number("precision.initial_loss_scale", {"--initial-loss-scale"}, "dynamic loss scale: initial value",
              RANKLAB_FIELD(precision.initial_loss_scale), above(0));
  rows.number("precision.min_loss_scale", {"--min-loss-scale"}, "dynamic loss scale: minimum",
              RANKLAB_FIELD(precision.min_loss_scale), above(0));
  rows.number("precision.max_loss_scale", {"--max-loss-scale"}, "dynamic loss scale: maximum",
              RANKLAB_FIELD(precision.max_loss_scale), above(0));
  rows.number("precision.loss_scale_window", {"--loss-scale-window"},
              "dynamic loss scale: steps without overflow before it doubles",
              RANKLAB_FIELD(precision.loss_scale_window), count(1));
}

}  // namespace

void add_precision(FieldRows& rows) {
  rows.begin("Precision");
  add_modes(rows);
  add_modules(rows);
  add_states(rows);
  add_scaling(rows);
}

}  // namespace ranklab::fields

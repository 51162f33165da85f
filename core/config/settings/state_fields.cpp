// Settings of what a run keeps in memory and in files.
#include "core/config/recompute_choice.h"
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {
namespace {

// "core_attn,moe"
ConfigField recomputed_modules() {
  ConfigField field{"memory.recompute_modules",
                    {"--recompute-modules"},
                    "selective: comma-separated list of core_attn (inner activations of attention), mlp, moe (a "
                    "layer's dense or expert MLP); for outputs of norms and activations see --keep-cheap-outputs"};
  field.get = [](const TrainConfig& config) { return names_of(config.recompute_modules); };
  field.set = [](TrainConfig& config, const std::string& text) {
    config.recompute_modules = parse_recomputed_modules(text);
  };
  return field;
}

}  // namespace

void add_memory(FieldRows& rows) {
  rows.begin("Memory");
  rows.flag("memory.keep_cheap_outputs", {"--keep-cheap-outputs"},
            "keep outputs of norms and activation functions for weight gradients instead of recomputing them",
            RANKLAB_FIELD(keep_cheap_outputs));
  rows.text("memory.recompute_granularity", {"--recompute-granularity"},
            "recompute activations in backward: those of --recompute-modules (selective), or whole layers (full)",
            RANKLAB_FIELD(recompute_granularity), {"none", "selective", "full"});
  rows.add(recomputed_modules());
  rows.text("memory.recompute_method", {"--recompute-method"},
            "full: recompute the first layers of each stage (block), or all layers in chunks (uniform)",
            RANKLAB_FIELD(recompute_method), {"block", "uniform"});
  rows.number("memory.recompute_num_layers", {"--recompute-num-layers"},
              "full: with block, layers to recompute per stage (0: all); with uniform, layers per chunk (0: 1)",
              RANKLAB_FIELD(recompute_num_layers), count(0));
  rows.flag("memory.optimizer_cpu_offload", {"--optimizer-cpu-offload"},
            "keep optimizer states and master weights in host memory (for tensors on GPUs)",
            RANKLAB_FIELD(optimizer_cpu_offload));
}

void add_checkpoints(FieldRows& rows) {
  rows.begin("Checkpoints");
  rows.text("checkpoint.save", {"--save"},
            "folder for checkpoints; one is written after the last step and after Ctrl-C", RANKLAB_FIELD(save_dir));
  rows.number("checkpoint.save_interval", {"--save-interval"}, "also write a checkpoint every N steps (0: no)",
              RANKLAB_FIELD(save_interval), count(0));
  rows.number("checkpoint.keep_last", {"--keep-last", "--most-recent-k"}, "keep the newest K checkpoints (0: all)",
              RANKLAB_FIELD(keep_last), count(0));
  rows.flag("checkpoint.async", {"--async-save"}, "write checkpoints in the background while training continues",
            RANKLAB_FIELD(async_save));
  rows.text("checkpoint.load", {"--load"},
            "resume from a checkpoint of any layout: a folder of checkpoints (the newest complete one), a "
            "single checkpoint, or auto (the newest in --save, if any)",
            RANKLAB_FIELD(load));
  rows.flag("checkpoint.finetune", {"--finetune"},
            "load only the weights; start at step 0 with new optimizer states and data from the start",
            RANKLAB_FIELD(finetune));
}

}  // namespace ranklab::fields

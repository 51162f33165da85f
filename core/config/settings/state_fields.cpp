// Settings of what a run keeps in memory and in files.
#include "core/config/recompute_choice.h"
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {
namespace {

// "core_attn,moe"
ConfigField recomputed_modules(const std::string& group) {
  ConfigField field{"memory.recompute_modules",
                    {"--recompute-modules"},
                    group,
                    "of selective, apart by commas: core_attn (attention's inner ones), mlp, moe (a layer's second "
                    "half, dense or with experts); outputs of norms and activations: --keep-cheap-outputs",
                    {},
                    {},
                    {},
                    {}};
  field.get = [](const TrainConfig& config) { return names_of(config.recompute_modules); };
  field.set = [](TrainConfig& config, const std::string& text) {
    config.recompute_modules = parse_recomputed_modules(text);
  };
  return field;
}

}  // namespace

void add_memory(std::vector<ConfigField>& rows) {
  const std::string g = "Memory";
  rows.push_back(flag(g, "memory.keep_cheap_outputs", {"--keep-cheap-outputs"},
                      "keep what norms and activations give for the weights' gradients, instead of recomputing it",
                      RANKLAB_FIELD(keep_cheap_outputs)));
  rows.push_back(text(g, "memory.recompute_granularity", {"--recompute-granularity"},
                      "activations recomputed in backward: selective (those of --recompute-modules), full (layers)",
                      RANKLAB_FIELD(recompute_granularity), {"none", "selective", "full"}));
  rows.push_back(recomputed_modules(g));
  rows.push_back(text(g, "memory.recompute_method", {"--recompute-method"},
                      "of full: the first layers of a stage (block), or chunks of layers (uniform)",
                      RANKLAB_FIELD(recompute_method), {"block", "uniform"}));
  rows.push_back(number(g, "memory.recompute_num_layers", {"--recompute-num-layers"},
                        "of full: block: so many layers of each stage (0: all); uniform: layers of a chunk (0: 1)",
                        RANKLAB_FIELD(recompute_num_layers), count(0)));
  rows.push_back(flag(g, "memory.optimizer_cpu_offload", {"--optimizer-cpu-offload"},
                      "optimizer states and master weights in the host's memory (of tensors on GPUs)",
                      RANKLAB_FIELD(optimizer_cpu_offload)));
}

void add_checkpoints(std::vector<ConfigField>& rows) {
  const std::string g = "Checkpoints";
  rows.push_back(text(g, "checkpoint.save", {"--save"},
                      "folder for checkpoints; one is written after the last step, also after Ctrl-C",
                      RANKLAB_FIELD(save_dir)));
  rows.push_back(number(g, "checkpoint.save_interval", {"--save-interval"}, "... and after every N steps (0: not)",
                        RANKLAB_FIELD(save_interval), count(0)));
  rows.push_back(number(g, "checkpoint.keep_last", {"--keep-last", "--most-recent-k"},
                        "keep the newest K checkpoints (0: all)", RANKLAB_FIELD(keep_last), count(0)));
  rows.push_back(flag(g, "checkpoint.async", {"--async-save"}, "write checkpoints while training goes on",
                      RANKLAB_FIELD(async_save)));
  rows.push_back(text(g, "checkpoint.load", {"--load"},
                      "go on from a checkpoint, of any layout: a folder of checkpoints (its newest whole one), one of "
                      "them, or auto: what --save has, if anything",
                      RANKLAB_FIELD(load)));
  rows.push_back(flag(g, "checkpoint.finetune", {"--finetune"},
                      "load the weights only: step 0, new optimizer states, data from the start",
                      RANKLAB_FIELD(finetune)));
}

}  // namespace ranklab::fields

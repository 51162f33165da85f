#include "cli/dry_run.h"

#include "core/base/text.h"
#include "core/runtime/memory_check.h"

namespace ranklab {

std::string dry_run_report(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const int tp = c.parallel.tp;
  const int64_t element = c.params_dtype == "fp64" ? 8 : 4;
  const double parameters = static_cast<double>(c.model.parameter_count() * element) / tp;
  const double fixed = static_cast<double>(fixed_bytes(plan)) / (plan.dp() * tp);
  const double flops = c.model.training_flops_per_token(c.model.seq_length) *
                       static_cast<double>(plan.tokens_per_step()) / c.parallel.world;
  std::string text;
  text += strprintf("%s: %s parameters, %ld layers, hidden %ld, sequence %ld, %s\n", c.preset.c_str(),
                    human_count(static_cast<double>(c.model.parameter_count())).c_str(),
                    static_cast<long>(c.model.num_layers), static_cast<long>(c.model.hidden_size),
                    static_cast<long>(c.model.seq_length), c.params_dtype.c_str());
  text += strprintf("  world    %d ranks on %s, %s\n", c.parallel.world, c.backend.c_str(), plan.profile.title.c_str());
  text += strprintf("  mesh     dp %d x tp %d%s\n", plan.dp(), tp, plan.sequence_parallel ? ", sequence parallel" : "");
  text += strprintf("  batch    %ld sequences = dp %d x %ld microbatches of %ld; %ld tokens a step\n",
                    static_cast<long>(c.global_batch_size), plan.dp(), static_cast<long>(plan.num_microbatches),
                    static_cast<long>(plan.micro_batch_size), static_cast<long>(plan.tokens_per_step()));
  text += "  memory   of one rank, activations on top\n";
  text += strprintf("    parameters  %s\n", human_bytes(parameters).c_str());
  text += strprintf("    gradients   %s\n", human_bytes(parameters).c_str());
  text += strprintf("    optimizer   %s\n", human_bytes(fixed - 2 * parameters).c_str());
  text += strprintf("    together    %s\n", human_bytes(fixed).c_str());
  text += strprintf("  compute  %sFLOP a rank and step\n", human_count(flops).c_str());
  return text + "nothing was run (--dry-run)\n";
}

}  // namespace ranklab

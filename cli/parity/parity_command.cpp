// The options of `ranklab parity`.
#include <memory>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/parity/parity_reference.h"
#include "cli/training_module.h"

namespace ranklab {
namespace {

TrainConfig parity_defaults() {
  TrainConfig c;
  c.train_iters = 2;
  c.trace = false;
  return c;
}

void check_settings(const ConfigOptions& options, const ParityRequest& request) {
  const TrainConfig config = options.config();
  if (request.types && request.all) return;  // layouts that do not fit are left out of the list instead
  options.resolve(config);
  if (!request.types) resolve(parity_reference(config, request.against));
}

}  // namespace

CommandAction setup_parity(CommandLine& app) {
  app.footer(
      "Examples:\n  ranklab parity --tp 2 --pp 2 --dp 2\n"
      "  ranklab parity --cp 4 --params-dtype fp64 --against --cp 2\n"
      "  ranklab parity --tp 4 --inject norm-unreduced --out parity.html\n"
      "  ranklab parity --all --world-size 8\n"
      "  ranklab parity --types --tp 4 --inject norm-unreduced\n"
      "The reference is one rank with the same global batches, or the layout given after --against. It also runs\n"
      "twice with weights that differ by one unit in the last place, and once with its sums in another order\n"
      "(microbatches in reverse, products in two halves). A tensor may differ by eight times what this changes.\n"
      "If a run in lower precision than fp32 does not differ, it is compared with its reference in fp32 as well.\n"
      "All tensors are kept in memory, so use small models. Exit code 4: a tensor differs.\n"
      "See docs/parity.md.");
  auto options = std::make_shared<ConfigOptions>(app, parity_defaults());
  auto request = std::make_shared<ParityRequest>();
  app.add_flag("--all", request->all, "test every layout of the world's ranks and print a table");
  app.add_flag("--audit", request->audit,
               "without a reference: find the first tensor whose copies on several ranks have different bits");
  app.add_flag("--types", request->types,
               "without a reference and without data: run one step on shapes and check over which axis each tensor is "
               "replicated, varying or partial");
  app.add_flag("--narrow,!--no-narrow", request->narrow,
               "after a difference, run smaller layouts to find what causes it (default: on)");
  app.add_option(
         "--out", request->out,
         "write a picture of all tensors and ranks: .html (interactive page), .svg, or .json for ranklab viz --parity")
      ->type_name("FILE");
  app.add_flag("--force", request->force, "let --out overwrite an existing file");
  app.add_flag("--json", request->json, "print one JSON object");
  app.add_option("--dumps", request->dumps,
                 "compare folders of dumped tensors (of ranklab or another program) instead of running: a run, its "
                 "reference, then runs of the reference with perturbed weights")
      ->one_value_each()
      ->type_name("FOLDER");
  app.add_option("--allowed", request->allowed, "tolerance for dumped tensors without perturbed runs, in epsilons")
      ->range(0.0, 1e12)
      ->capture_default_str();
  app.add_option("--against", request->against, "all following flags belong to the reference (default: one rank)")
      ->takes_rest()
      ->type_name("FLAGS");
  return [options, request] {
    check_request(*request);
    if (request->dumps.empty()) check_settings(*options, *request);
    return training_functions().parity(*options, *request);
  };
}

}  // namespace ranklab

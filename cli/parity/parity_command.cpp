// ranklab parity: its options.
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
  if (request.types && request.all) return;  // of the layouts, those that do not fit are left out
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
      "The reference is one rank with the same global batches, or what --against says. It runs again twice with\n"
      "weights that differ by one unit in the last place, and once with its sums in another order (microbatches in\n"
      "reverse, products in two halves): eight times the distance that this makes is allowed.\n"
      "A run in fewer bits than fp32 that does not differ is held to its reference in fp32, too.\n"
      "All tensors are kept, so small models. Exit code 4: a tensor differs.\n"
      "What is compared: docs/parity.md.");
  auto options = std::make_shared<ConfigOptions>(app, parity_defaults());
  auto request = std::make_shared<ParityRequest>();
  app.add_flag("--all", request->all, "every layout of the world's ranks, as a table");
  app.add_flag("--audit", request->audit,
               "no reference: the first tensor of which ranks' copies, which must have the same bits, differ");
  app.add_flag("--types", request->types,
               "no reference and no numbers: one step on shapes, which follows what is replicated, varying or partial "
               "over which axis");
  app.add_flag("--narrow,!--no-narrow", request->narrow,
               "with a difference, run smaller layouts to find what it needs (default: on)");
  app.add_option(
         "--out", request->out,
         "a picture of all tensors and ranks to write: .html, a page to look into, .svg, or .json for ranklab viz "
         "--parity")
      ->type_name("FILE");
  app.add_flag("--force", request->force, "write --out over a file of that name");
  app.add_flag("--json", request->json, "print one JSON object");
  app.add_option(
         "--dumps", request->dumps,
         "instead of running: folders of dumped tensors, of ranklab or of another program: a run, its reference, "
         "and runs of the reference with perturbed weights")
      ->one_value_each()
      ->type_name("FOLDER");
  app.add_option("--allowed", request->allowed, "epsilons that dumped tensors may be apart, without perturbed runs")
      ->range(0.0, 1e12)
      ->capture_default_str();
  app.add_option("--against", request->against,
                 "flags of the reference, on top of one rank's settings; all that follows is its")
      ->takes_rest()
      ->type_name("FLAGS");
  return [options, request] {
    check_request(*request);
    if (request->dumps.empty()) check_settings(*options, *request);
    return training_functions().parity(*options, *request);
  };
}

}  // namespace ranklab

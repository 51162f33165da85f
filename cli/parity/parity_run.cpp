#include "cli/parity/parity_run.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/common/table.h"
#include "cli/common/terminal.h"
#include "cli/parity/parity_picture.h"
#include "cli/parity/parity_reference.h"
#include "cli/parity/parity_text.h"
#include "cli/parity/parity_types.h"
#include "cli/train/gemm.h"
#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/requirements.h"
#include "core/museum/hunt.h"
#include "core/parity/every_layout.h"
#include "core/parity/microscope.h"
#include "core/parity/parity_memory.h"
#include "core/parity/read_dumps.h"
#include "core/parity/smaller_layouts.h"
#include "core/runtime/memory/check.h"

namespace ranklab {
namespace {

std::function<void(const std::string&)> progress() {
  if (!on_terminal(2)) return {};
  return [](const std::string& what) {
    std::fprintf(stderr, "\r\033[K  %s ", what.c_str());
    std::fflush(stderr);
  };
}
void end_progress() {
  if (on_terminal(2)) std::fputs("\r\033[K", stderr);
}

// Checks the settings before any rank starts.
void check_run(const ConfigOptions& options, const TrainConfig& config, const ParityRequest& request) {
  check_command(config, Capability::kHeldRanks, "ranklab parity");
  RunPlan plan = options.resolve(config);
  check_memory(plan, memory_of_ranks(plan.config));
  const RunPlan reference = resolve(parity_reference(config, request.against));
  check_parity_memory(plan, request.audit ? nullptr : &reference, config.train_iters);
  choose_gemm(plan);
}

std::unique_ptr<Microscope> made(const TrainConfig& reference, const ParityOptions& how, bool audits) {
  return audits ? std::make_unique<Microscope>(simulated_world, how)
                : std::make_unique<Microscope>(reference, simulated_world, how);
}

// The result as JSON; for a difference an error, whose data have the same content as those of a correct run.
std::string as_json(const nlohmann::ordered_json& data, const std::string& different) {
  if (different.empty()) return json_result(data);
  const Error found(ErrorKind::kCheckFailed, {.where = "parity", .what = "the two runs differ", .got = different});
  return json_error(found, data, exit_code(found.kind()));
}

// Prints and draws the result. RETURNS: the exit code.
int answer(const ParityResult& result, const ParityRequest& request, const ParityPicture& picture) {
  const std::string verdict = parity_verdict(result, Style(false));
  std::fputs(request.json ? as_json(parity_json(result), result.differs() ? verdict : "").c_str()
                          : parity_text(result).c_str(),
             stdout);
  picture.write(result);
  return result.differs() ? exit_code(ErrorKind::kCheckFailed) : 0;
}

int run_one(const ConfigOptions& options, const ParityRequest& request) {
  const TrainConfig config = options.config();
  check_run(options, config, request);
  const ParityPicture picture(request.out);
  const ParityOptions how{.steps = config.train_iters, .narrow = request.narrow, .progress = progress()};
  const ParityResult result = made(parity_reference(config, request.against), how, request.audit)->examine(config);
  end_progress();
  const int code = answer(result, request, picture);
  if (code == 0 && !request.json && !config.inject.empty())
    std::printf("  %s has no visible effect in this layout and these steps; %s has a training run that shows it\n",
                config.inject.c_str(), story_command(config.inject).c_str());
  return code;
}

int run_all(const ConfigOptions& options, const ParityRequest& request) {
  const TrainConfig config = options.config();
  check_run(options, config, request);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Table table({"layout", "tensors", "closest to its tolerance", "eps", "allowed", "verdict"});
  size_t different = 0, done = 0;
  // Layouts with the same number of microbatches and of ranks have the same reference.
  std::map<std::pair<int, int64_t>, std::unique_ptr<Microscope>> references;
  const std::vector<TrainConfig> layouts = every_layout(config);
  for (const TrainConfig& layout : layouts) {
    if (on_terminal(2)) std::fprintf(stderr, "\r\033[K  layout %zu of %zu ", ++done, layouts.size());
    const TrainConfig reference = parity_reference(layout, request.against);
    std::unique_ptr<Microscope>& microscope = references[{reference.parallel.world, reference.num_microbatches}];
    if (!microscope) microscope = made(reference, {.steps = config.train_iters, .narrow = false}, request.audit);
    const ParityResult result = microscope->examine(layout);
    different += result.differs();
    rows.push_back(parity_json(result));
    const TensorVerdict* shown = result.wrong() != nullptr ? result.wrong() : result.comparison.closest();
    table.add({layout_flags(layout), std::to_string(result.comparison.verdicts.size()),
               shown != nullptr ? shown->key.text() : result.ended,
               shown != nullptr ? strprintf("%.3g", shown->worst.eps) : "",
               shown != nullptr ? strprintf("%.3g", shown->tolerance) : "",
               !result.ended.empty()          ? "FAILED"
               : !result.differs()            ? "same"
               : result.low_precision.empty() ? "DIFFERENT"
                                              : "DIFFERENT in fp32"});
  }
  end_progress();
  if (request.json) {
    const std::string some = different > 0 ? std::to_string(different) + " layouts" : "";
    std::fputs(as_json({{"layouts", rows}, {"different", different}}, some).c_str(), stdout);
  } else {
    std::fputs(table.for_stdout().c_str(), stdout);
    std::printf("%zu layouts, %zu different\n", layouts.size(), different);
  }
  return different > 0 ? exit_code(ErrorKind::kCheckFailed) : 0;
}

int run_dumps(const ParityRequest& request) {
  if (request.audit) {
    const ParityPicture picture(request.out);
    return answer(audited(read_dumps(request.dumps[0])), request, picture);
  }
  const ParityPicture picture(request.out);
  std::vector<ParityRecord> perturbed;
  for (size_t i = 2; i < request.dumps.size(); ++i) perturbed.push_back(read_dumps(request.dumps[i]));
  const double least = perturbed.empty() ? request.allowed : kLeastEps;
  const ParityReference reference(read_dumps(request.dumps[1]), perturbed, kFactor, least);
  const ParityResult result = compare_with_reference(read_dumps(request.dumps[0]), reference);
  RANKLAB_CHECK(!result.comparison.verdicts.empty(), ErrorKind::kCheckFailed, .where = "parity",
                .what = "the two have no tensor in common", .got = request.dumps[0] + " and " + request.dumps[1],
                .fix = "see that steps and names of modules agree");
  return answer(result, request, picture);
}

}  // namespace

int run_parity(const ConfigOptions& options, const ParityRequest& request) {
  if (request.types) return run_types(options, request);
  if (!request.dumps.empty()) return run_dumps(request);
  return request.all ? run_all(options, request) : run_one(options, request);
}

}  // namespace ranklab

#include "core/runtime/checkpoint/choice.h"

#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/checkpoint/run_folder.h"
#include "core/config/batch_choice.h"

namespace ranklab {
namespace {

std::shared_ptr<const Checkpoint> verified(const std::string& folder) {
  auto checkpoint = std::make_shared<Checkpoint>(folder);
  checkpoint->verify();
  return checkpoint;
}

// A link may point anywhere, and what --save does to old checkpoints must not happen there, so links are never chosen
// automatically: a user has to name one.
void report_newer_links(const std::string& run_folder, int64_t step) {
  for (const StepFolder& link : step_links(run_folder)) {
    if (link.step > step)
      log_warning("skipping a checkpoint that is a link: " + quote(link.path) +
                  "; to resume from it, pass it to --load");
  }
}

// RETURNS: the newest undamaged checkpoint; null if there are no checkpoints at all. `damaged`: the steps of damaged
// ones that were skipped.
std::shared_ptr<const Checkpoint> newest_whole(const std::string& run_folder, std::set<int64_t>& damaged) {
  std::string first;
  const std::vector<StepFolder> folders = step_folders(run_folder);
  report_newer_links(run_folder, folders.empty() ? -1 : folders[0].step);
  for (const StepFolder& folder : folders) {
    try {
      return verified(folder.path);
    } catch (const Error& error) {
      damaged.insert(folder.step);
      if (first.empty()) first = error.text().what + ", " + error.text().got;
      log_warning("skipping an incomplete checkpoint: " + std::string(error.what()));
    }
  }
  RANKLAB_CHECK(damaged.empty(), ErrorKind::kBadFile, .where = "checkpoint",
                .what = quote(run_folder) + ": none of its checkpoints is complete",
                .got = std::to_string(damaged.size()) + " damaged, the newest: " + first, .want = "one that is",
                .fix = "restore one from a copy, or start over in another folder");
  return nullptr;
}

// Refuses a folder of --save that contains later checkpoints, which would mix with this run's own.
void check_save_folder(const TrainConfig& c, int64_t first_step, const std::set<int64_t>& damaged) {
  if (c.save_dir.empty()) return;
  for (const StepFolder& folder : step_folders(c.save_dir)) {
    if (damaged.contains(folder.step) || folder.step <= (c.load.empty() ? -1 : first_step)) continue;
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "checkpoint",
                 .what = "the folder of --save holds checkpoints that this run would not resume from",
                 .got = quote(folder.path) + ", and the run starts at step " + std::to_string(first_step),
                 .want = "a folder without later checkpoints",
                 .fix = "resume with --load auto, pass another --save, or move them away"});
  }
}

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(a, b, ignored);
}

}  // namespace

DataCursor data_cursor(const CheckpointChoice& choice, bool finetune) {
  if (!choice.checkpoint || finetune) return {};
  const CheckpointManifest& manifest = choice.checkpoint->manifest();
  return {.step = manifest.step, .samples = manifest.consumed_samples};
}

CheckpointChoice choose_checkpoint(const RunPlan& plan, const SettingTexts& data) {
  const TrainConfig& c = plan.config;
  CheckpointChoice choice;
  std::set<int64_t> damaged;
  if (c.load == "auto") {
    choice.checkpoint = newest_whole(c.save_dir, damaged);
    if (!choice.checkpoint) choice.text = "nothing: " + quote(c.save_dir) + " holds no checkpoint yet, a fresh start";
  } else if (!c.load.empty() && (!is_folder(c.load) || is_checkpoint(c.load) || step_folders(c.load).empty())) {
    choice.checkpoint = verified(checkpoint_named(c.load));
  } else if (!c.load.empty()) {
    choice.checkpoint = newest_whole(c.load, damaged);
    if (!same_folder(c.load, c.save_dir)) damaged.clear();
  }
  const DataCursor cursor = data_cursor(choice, c.finetune);
  const int64_t first_step = cursor.step;
  if (choice.checkpoint) {
    const CheckpointManifest& manifest = choice.checkpoint->manifest();
    check_resumable(manifest, plan, data, choice.checkpoint->folder());
    choice.text = choice.checkpoint->folder() + ": " + origin_text(manifest);
    if (c.finetune) choice.text += "; the weights only, step 0" + other_positions(manifest, c);
    if (!c.finetune && first_step >= steps_of_run(plan_from(plan, cursor)))
      choice.text += "; nothing is left of " + run_length_text(c);
  }
  check_save_folder(c, first_step, damaged);
  return choice;
}

}  // namespace ranklab

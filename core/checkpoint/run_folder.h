// The folder in which a run keeps its checkpoints:
//   step_00000040/   one checkpoint (manifest.h), written under another name and renamed when it is whole
//   latest           the name of the newest, a hint for people: readers look at the folders themselves
//   lock             who writes here (run_lock.h)
//   .saving-...      a checkpoint being written; .old-... one being removed; leftovers if their run is dead
// Thread rule: reading from any thread; changes to the folder, from the holder of its lock.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/file_calls.h"

namespace ranklab {

std::string step_folder_name(int64_t step);  // "step_00000040"
bool parse_step_folder(std::string_view name, int64_t& step);

struct StepFolder {
  int64_t step = 0;
  std::string path = {};
};
// Newest first; empty when the folder does not exist. Links are skipped. Throws kIo.
std::vector<StepFolder> step_folders(const std::string& run_folder);
std::vector<StepFolder> step_links(const std::string& run_folder);  // the links that step_folders() skips

// Whether this folder is itself a checkpoint. Throws kIo if the system does not report it.
bool is_checkpoint(const std::string& folder);
// The folder of a checkpoint that a user named: this folder itself, or the newest checkpoint in this run folder. Throws
// kIo.
std::string checkpoint_named(const std::string& path);

// Creates the folder and its parents. Throws kIo, or kInvalidArgument if it is itself a checkpoint.
void make_run_folder(const std::string& run_folder);
// Removes unfinished leftovers of dead runs. REQUIRES: the lock.
void remove_leftovers(const std::string& run_folder, FileCalls& calls = system_file_calls());
// Keeps the checkpoint of `step` and the keep - 1 before it, and removes older ones. Newer ones belong to another run.
void prune(const std::string& run_folder, int64_t step, int64_t keep, FileCalls& calls = system_file_calls());
// Removes a folder of plain files: renames it to a name that readers ignore, then deletes it. What cannot be removed
// stays.
void remove_checkpoint(const std::string& run_folder, const std::string& name, FileCalls& calls = system_file_calls());

}  // namespace ranklab

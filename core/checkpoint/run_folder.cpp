#include "core/checkpoint/run_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/checkpoint/manifest.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step_", kSaving = ".saving-", kOld = ".old-";
constexpr size_t kStepDigits = 8;

[[noreturn]] void refuse_folder(const std::string& what, const std::string& path, const std::string& reason) {
  throw Error(ErrorKind::kIo, {.where = "checkpoint",
                               .what = what + " " + quote(path),
                               .got = reason,
                               .fix = "check the path and its permissions"});
}

// Links are not followed. Throws kIo if the system does not report what is there, because "no checkpoint" would be a
// guess.
fs::file_type own_type(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::none) refuse_folder("cannot access", path, error.message());
  return type;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    refuse_folder("cannot list the folder", folder, error.message());
  return names;
}

std::vector<StepFolder> steps_in(const std::string& run_folder, fs::file_type type) {
  std::vector<StepFolder> folders;
  for (const std::string& name : names_in(run_folder)) {
    StepFolder folder{.path = run_folder + "/" + name};
    if (parse_step_folder(name, folder.step) && own_type(folder.path) == type) folders.push_back(folder);
  }
  std::ranges::sort(folders, std::ranges::greater(), &StepFolder::step);
  return folders;
}

// Files inside subfolders are not removed, and rmdir leaves a non-empty folder alone.
void remove_files(const std::string& folder, FileCalls& calls) {
  if (own_type(folder) != fs::file_type::directory) return;
  for (const std::string& name : names_in(folder)) calls.unlink((folder + "/" + name).c_str());
  calls.remove_folder(folder.c_str());
}

}  // namespace

std::string step_folder_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kStep) + digits;
}

bool parse_step_folder(std::string_view name, int64_t& step) {
  if (!name.starts_with(kStep)) return false;
  const std::string_view digits = name.substr(kStep.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return error == std::errc() && end == digits.data() + digits.size() && step >= 0 && step_folder_name(step) == name;
}

std::vector<StepFolder> step_folders(const std::string& run_folder) {
  return steps_in(run_folder, fs::file_type::directory);
}
std::vector<StepFolder> step_links(const std::string& run_folder) {
  return steps_in(run_folder, fs::file_type::symlink);
}

bool is_checkpoint(const std::string& folder) {
  const std::string manifest = folder + "/" + kManifestName;
  std::error_code error;
  const fs::file_type type = fs::status(manifest, error).type();
  if (type == fs::file_type::none) refuse_folder("cannot access", manifest, error.message());
  return type != fs::file_type::not_found;
}

std::string checkpoint_named(const std::string& path) {
  require_folder(path, "checkpoint", "a checkpoint, or the folder that --save wrote them to");
  if (is_checkpoint(path)) return path;
  const std::vector<StepFolder> folders = step_folders(path);
  RANKLAB_CHECK(!folders.empty() || !is_there(path + "/config.json"), ErrorKind::kInvalidArgument,
                .where = "checkpoint", .what = "a Hugging Face folder is not a checkpoint", .got = quote(path),
                .want = "a checkpoint", .fix = "convert it: ranklab ckpt import-hf " + shell_path(path) + " OUT");
  RANKLAB_CHECK(!folders.empty(), ErrorKind::kIo, .where = "checkpoint", .what = "the folder holds no checkpoint",
                .got = quote(path) + (step_links(path).empty() ? "" : ", in which links are ignored"),
                .want = std::string(kManifestName) + " in it, or folders such as " + step_folder_name(40),
                .fix = "pass the folder that a run wrote with --save");
  return folders[0].path;
}

void make_run_folder(const std::string& run_folder) {
  std::error_code error;
  fs::create_directories(run_folder, error);
  if (error || !fs::is_directory(run_folder))
    refuse_folder("cannot create the folder", run_folder, error ? error.message() : "a file of that name");
  RANKLAB_CHECK(!is_checkpoint(run_folder), ErrorKind::kInvalidArgument, .where = "checkpoint",
                .what = "--save names a checkpoint itself", .got = quote(run_folder),
                .want = "a folder for checkpoints", .fix = "pass the folder that it lies in, or another one");
}

void remove_leftovers(const std::string& run_folder, FileCalls& calls) {
  for (const std::string& name : names_in(run_folder)) {
    if (name.starts_with(kSaving) || name.starts_with(kOld)) remove_files(run_folder + "/" + name, calls);
    if (name.starts_with("latest.part")) calls.unlink((run_folder + "/" + name).c_str());
  }
}

void remove_checkpoint(const std::string& run_folder, const std::string& name, FileCalls& calls) {
  const std::string away = run_folder + "/" + std::string(kOld) + name;
  remove_files(away, calls);  // left by a run that was killed here
  if (calls.rename((run_folder + "/" + name).c_str(), away.c_str()) == 0) remove_files(away, calls);
}

void prune(const std::string& run_folder, int64_t step, int64_t keep, FileCalls& calls) {
  int64_t kept = 0;
  for (const StepFolder& folder : step_folders(run_folder)) {
    if (folder.step > step || kept++ < keep) continue;
    remove_checkpoint(run_folder, step_folder_name(folder.step), calls);
  }
}

}  // namespace ranklab

#include "lessons/progress.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/system.h"

namespace ranklab::lesson {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LessonState, exercise, prediction, hints, attempts, passed,
                                                solution_seen)

namespace {

using Json = nlohmann::json;
constexpr int kSchema = 1;

std::filesystem::path state_folder() {
  if (!environment_variable("RANKLAB_STATE_DIR").empty()) return environment_variable("RANKLAB_STATE_DIR");
  if (!environment_variable("XDG_STATE_HOME").empty())
    return std::filesystem::path(environment_variable("XDG_STATE_HOME")) / "ranklab";
  RANKLAB_CHECK(!environment_variable("HOME").empty(), ErrorKind::kEnvironment, .where = "lesson",
                .what = "there is no folder for the progress file", .got = "no HOME",
                .want = "a folder you may write to", .fix = "set HOME or RANKLAB_STATE_DIR");
  return std::filesystem::path(environment_variable("HOME")) / ".local/state/ranklab";
}

}  // namespace

std::filesystem::path Progress::file() { return state_folder() / "lessons.json"; }

Progress Progress::load() {
  const std::filesystem::path path = file();
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  constexpr uint64_t kMostBytes = 16 << 20;
  const std::string text =
      read_whole_file(path, kMostBytes, {.where = "lesson progress", .fix = "move it away to start over"});
  try {
    const Json json = Json::parse(text);
    Progress progress;
    RANKLAB_CHECK(json.at("schema") == kSchema, ErrorKind::kBadFile, .where = "lesson progress",
                  .what = "the progress file has another version", .got = path.string(),
                  .want = "schema " + std::to_string(kSchema), .fix = "move it away to start over");
    progress.current = json.at("current");
    progress.lessons = json.at("lessons").get<std::map<std::string, LessonState>>();
    return progress;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kBadFile, {.where = "lesson progress",
                                      .what = "the progress file is damaged",
                                      .got = path.string() + ": " + error.what(),
                                      .want = "the JSON that ranklab wrote",
                                      .fix = "move it away to start over; your exercises stay where they are"});
  }
}

void Progress::save() const {
  const std::filesystem::path path = file();
  const std::filesystem::path fresh = path.string() + "." + std::to_string(::getpid()) + ".new";
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  {
    std::ofstream out(fresh);
    out << Json{{"schema", kSchema}, {"current", current}, {"lessons", lessons}}.dump(2) << "\n";
    RANKLAB_CHECK(out.flush().good(), ErrorKind::kIo, .where = "lesson progress",
                  .what = "the progress file cannot be written", .got = path.string(), .want = "a writable folder",
                  .fix = "set RANKLAB_STATE_DIR to one");
  }
  std::filesystem::rename(fresh, path);
}

}  // namespace ranklab::lesson

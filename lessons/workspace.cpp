#include "lessons/workspace.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <regex>
#include <system_error>

#include "core/base/error.h"

namespace ranklab::lesson {
namespace fs = std::filesystem;

fs::path exercise_path(const LessonRow& row) {
  return fs::current_path() / "ranklab-lessons" / row.folder_name() / "exercise.cpp";
}

namespace {

// Gives `fresh` its final name unless a file has that name. Where a file system has no hard links (FAT, folders shared
// with a virtual machine), it is copied to a file that must be new.
void name_if_new(const fs::path& fresh, const fs::path& to, std::error_code& error) {
  fs::create_hard_link(fresh, to, error);
  if (!error || error == std::errc::file_exists) return;
  fs::copy_file(fresh, to, error);
  std::error_code ignored;
  if (error && error != std::errc::file_exists) fs::remove(to, ignored);  // the part that was written
}

}  // namespace

bool copy_exercise(const LessonRow& row, const fs::path& to) {
  if (fs::exists(to)) return false;
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  // Written under a temporary name and then given its own, so that it never replaces a file that has appeared in the
  // meantime.
  const fs::path fresh = to.string() + ".new";
  if (!error) fs::copy_file(row.folder() / "exercise.cpp", fresh, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(fresh, fs::perms::owner_write, fs::perm_options::add, error);
  if (!error) name_if_new(fresh, to, error);
  const std::string why = error.message();
  std::error_code ignored;
  fs::remove(fresh, ignored);
  RANKLAB_CHECK(!error, ErrorKind::kIo, .where = "lesson", .what = "the exercise cannot be copied",
                .got = to.string() + ": " + why, .want = "a folder you may write to",
                .fix = "change to a folder of yours and start the lesson there");
  return true;
}

std::vector<fs::path> headers_of(const LessonRow& row) {
  static const std::regex kInclude("^#include \"([^\"]+)\"", std::regex::multiline);
  std::vector<fs::path> headers;
  const std::function<void(const fs::path&)> follow = [&](const fs::path& file) {
    const std::string text = read_text(file);
    for (std::sregex_iterator it(text.begin(), text.end(), kInclude), end; it != end; ++it) {
      const fs::path header = (file.parent_path() / (*it)[1].str()).lexically_normal();
      if (std::find(headers.begin(), headers.end(), header) != headers.end()) continue;
      headers.push_back(header);
      follow(header);
    }
  };
  follow(row.folder() / "exercise.cpp");
  return headers;
}

void write_compile_flags(const LessonRow& row, const fs::path& exercise) {
  const fs::path file = exercise.parent_path() / "compile_flags.txt";
  const std::string first = "-std=c++20\n";
  if (fs::exists(file) && !read_text(file).starts_with(first)) return;  // written by somebody else
  std::ofstream(file) << first << "-Wall\n-I" << row.folder().string() << "\n";
}

fs::path reset_exercise(const LessonRow& row, const fs::path& to) {
  fs::path backup;
  if (fs::exists(to)) {
    for (int n = 1; backup.empty() || fs::exists(backup); ++n) backup = to.string() + ".backup-" + std::to_string(n);
    fs::rename(to, backup);
  }
  copy_exercise(row, to);
  return backup;
}

}  // namespace ranklab::lesson

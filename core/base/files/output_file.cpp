#include "core/base/files/output_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// Also under another name (a hard link, a path through a linked folder), or as a file inside an input folder.
bool is_input(const std::string& path, const std::string& input) {
  std::error_code error;
  if (fs::equivalent(path, input, error)) return true;
  const fs::path folder = fs::canonical(input, error);
  if (error || !fs::is_directory(folder, error)) return false;
  const fs::path file = fs::canonical(path, error);
  return !error && std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

bool is_own(const OutputFile& file) {
  try {
    return file.own && file.own();
  } catch (const Error&) {  // a file that cannot be read as the command's own is not its own
    return false;
  }
}

}  // namespace

bool begins_with(const std::string& path, const std::string& text) {
  try {
    std::string begin(text.size(), '\0');
    return InputFile(path, {}).read_some(begin) == begin.size() && begin == text;
  } catch (const Error&) {
    return false;
  }
}

void check_output(const OutputFile& file) {
  const auto refuse = [&](const std::string& what, const std::string& got, const std::string& want,
                          const std::string& fix) {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = file.option, .what = what, .got = got, .want = want, .fix = fix});
  };
  if (file.path.empty()) refuse("the file name is empty", "''", "the file to write", "give a path");
  struct stat there {};
  if (::lstat(file.path.c_str(), &there) != 0) return;  // it does not exist, or the write will report the reason
  if (!S_ISREG(there.st_mode))
    refuse("the existing file is not a regular file", quote(file.path) + ", " + file_type_name(there.st_mode),
           "a new file, or a regular one", "give another path; to write into a pipe, pass it a file with cat");
  for (const std::string& input : file.inputs) {
    if (is_input(file.path, input))
      refuse("this file is an input of the same command", quote(file.path) + ", of " + quote(input),
             "a file that is not an input", "give another path: an input is never overwritten, not even with --force");
  }
  if (!file.force && !is_own(file))
    refuse("a file of this name exists, and nothing shows that this command wrote it", quote(file.path),
           "a new name, or --force", "give another path, or overwrite it with --force");
}

}  // namespace ranklab

#include "core/base/files/path_type.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

fs::file_type type_of(const std::string& path, std::error_code& error) { return fs::status(path, error).type(); }

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return type_of(path, ignored) == fs::file_type::directory;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return type_of(path, ignored) != fs::file_type::not_found;
}

void require_folder(const std::string& path, const std::string& where, const std::string& want) {
  std::error_code error;
  // "/." asks from inside the folder: one that can be seen but not entered is of no use either.
  const fs::file_type type = type_of(path.empty() ? path : path + "/.", error);
  if (type == fs::file_type::directory) return;
  const bool unseen = type == fs::file_type::none;
  throw Error(ErrorKind::kIo, {.where = where,
                               .what = unseen ? "cannot access the folder" : "there is no folder of that name",
                               .got = quote(path) + (unseen ? ": " + error.message() : ""),
                               .want = want,
                               .fix = unseen ? "check the path and its permissions" : "check the path"});
}

}  // namespace ranklab

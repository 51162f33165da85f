#include "cli/parity/parity_picture.h"

#include <cstdio>
#include <utility>

#include "cli/common/command_module.h"
#include "cli/parity/parity_table.h"
#include "cli/parity/parity_text.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/shell_quote.h"

namespace ranklab {
namespace {

const ErrorText kCannotWrite = {
    .where = "--out", .what = "cannot write the picture", .fix = "check the folder and its space"};

}  // namespace

ParityPicture::ParityPicture(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  AtomicFile(path_, kCannotWrite);  // says so now if the folder cannot be written
  prepare_module("viz");
  draw_ = reinterpret_cast<Draw*>(module_function("viz", "ranklab_draw_parity"));
}

void ParityPicture::write(const ParityResult& result) const {
  if (draw_ == nullptr) return;
  viz::ParityMap map = parity_table(result);
  map.verdict = parity_verdict(result, Style(false));
  map.facts = parity_facts(result);
  std::string file;
  draw_(map, path_, file);
  write_file_atomically(path_, file, kCannotWrite);
  const bool opens = path_.ends_with(".json");
  std::fprintf(stderr, "wrote %s%s\n", path_.c_str(),
               opens ? (" (ranklab viz --parity " + shell_path(path_) + ")").c_str() : "");
}

}  // namespace ranklab

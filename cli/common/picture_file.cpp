#include "cli/common/picture_file.h"

#include <utility>

#include "cli/common/command_module.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/output_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

const ErrorText kCannotWrite = {
    .where = "--out", .what = "cannot write the picture", .fix = "check the folder and its space"};

}  // namespace

viz::Ground ground_of(const std::string& theme) {
  RANKLAB_CHECK(theme == "light" || theme == "dark", ErrorKind::kInvalidArgument, .where = "--theme",
                .what = "no theme has this name", .got = quote(theme), .want = "light or dark",
                .fix = "use --theme dark");
  return theme == "dark" ? viz::Ground::kDark : viz::Ground::kLight;
}

PictureFile::PictureFile(std::string path, std::string writer, viz::Ground ground, bool force,
                         const std::vector<std::string>& inputs)
    : path_(std::move(path)), head_("<!-- Written by ranklab " + std::move(writer) + ". -->\n"), ground_(ground) {
  RANKLAB_CHECK(is_picture(path_), ErrorKind::kInvalidArgument, .where = "--out", .what = "not the name of a picture",
                .got = quote(path_), .want = "a name that ends in .png or .svg", .fix = "use --out model.svg");
  const bool is_svg = path_.ends_with(".svg");
  check_output({.path = path_,
                .option = "--out",
                .inputs = inputs,
                .own = [&] { return is_svg && begins_with(path_, head_); },
                .force = force});
  AtomicFile(path_, kCannotWrite);  // says so now if the folder cannot be written
  if (is_svg) return;
  prepare_module("viz");
  draw_ = reinterpret_cast<Draw*>(module_function("viz", "ranklab_draw_png"));
}

void PictureFile::write(const viz::Drawing& drawing) const {
  std::string file;
  if (draw_ != nullptr) {
    draw_(drawing, ground_, file);
  } else {
    file = head_ + viz::svg_of(drawing, ground_);
  }
  write_file_atomically(path_, file, kCannotWrite);
}

}  // namespace ranklab

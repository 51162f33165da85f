// A drawing that a command writes to a file that the user names: as an SVG, which the program writes itself, or as a
// PNG, for which the viz module is opened (and built, if ./ranklab started the program). Thread rule: main thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "viz/model/svg/drawing.h"

namespace ranklab {

constexpr bool is_picture(std::string_view path) { return path.ends_with(".svg") || path.ends_with(".png"); }
// "light" or "dark"; throws kInvalidArgument for anything else.
viz::Ground ground_of(const std::string& theme);

class PictureFile {
 public:
  // Call before the work. Throws kInvalidArgument if the file must not be overwritten, kIo if it cannot be written,
  // kEnvironment if a PNG needs something that is missing. `writer`: the command's name, by which the command
  // recognizes SVG files that it wrote itself.
  PictureFile(std::string path, std::string writer, viz::Ground ground, bool force,
              const std::vector<std::string>& inputs = {});
  void write(const viz::Drawing& drawing) const;

 private:
  using Draw = void(const viz::Drawing& drawing, viz::Ground ground, std::string& png);
  std::string path_, head_;
  viz::Ground ground_;
  Draw* draw_ = nullptr;
};

}  // namespace ranklab

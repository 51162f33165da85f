// A drawing that a command writes where the user says: as an SVG, which the program makes itself, or as a PNG, for
// which the viz module is opened (and built, where ./ranklab started the program). Thread rule: main thread.
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
  // Before the work: throws kInvalidArgument where the file may not be written, kIo where it cannot be, kEnvironment
  // where a PNG needs what is not there. `writer`: the command's name, by which it knows its own SVG again.
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

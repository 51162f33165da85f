// The file that `ranklab parity --out` writes: the map of a result, as a page or a drawing. The code that draws is in
// the viz module, which is opened (and built, if ./ranklab started the program) only if a picture is requested. Thread
// rule: main thread.
#pragma once
#include <string>

#include "core/parity/microscope.h"
#include "viz/model/parity/parity_map.h"

namespace ranklab {

class ParityPicture {
 public:
  // Call before the work: throws kIo if the file cannot be written, kEnvironment without the module. An empty path
  // means that no picture is requested.
  explicit ParityPicture(std::string path);
  void write(const ParityResult& result) const;

 private:
  using Draw = void(const viz::ParityMap& map, const std::string& path, std::string& file);
  std::string path_;
  Draw* draw_ = nullptr;
};

}  // namespace ranklab

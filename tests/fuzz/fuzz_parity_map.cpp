// Any bytes as the file of a parity result: the reader refuses it with ranklab's own error, or what it has read can be
// drawn as a picture and as a page, and written again it is the same.
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "viz/html/parity/parity_page.h"
#include "viz/model/parity/parity_file.h"
#include "viz/model/parity/parity_svg.h"

using namespace ranklab;
using namespace ranklab::viz;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ParityMap map;
  try {
    map = parse_parity_file(std::string(reinterpret_cast<const char*>(data), size), "a file");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kBadFile);
    return 0;
  }
  const std::string text = parity_file_text(map);
  require(parity_file_text(parse_parity_file(text, "again")) == text);
  require(!parity_svg(map).empty() && !parity_page(map).empty());
  for (const ParityUnit& unit : parity_units(map)) furthest_place(map, unit.begin, unit.end);
  return 0;
}

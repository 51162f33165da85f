// The viz module's part of `ranklab parity --out` (parity_picture.h).
#include <string>

#include "viz/html/parity/parity_page.h"
#include "viz/model/parity_svg.h"

extern "C" void ranklab_draw_parity(const ranklab::viz::ParityMap& map, bool is_svg, std::string& file) {
  file = is_svg ? ranklab::viz::parity_svg(map) : ranklab::viz::parity_page(map);
}

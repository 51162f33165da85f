// The part of `ranklab parity --out` that is in the viz module (parity_picture.h).
#include <string>

#include "viz/html/parity/parity_page.h"
#include "viz/model/parity/parity_file.h"
#include "viz/model/parity/parity_svg.h"

extern "C" void ranklab_draw_parity(const ranklab::viz::ParityMap& map, const std::string& path, std::string& file) {
  file = path.ends_with(".svg")    ? ranklab::viz::parity_svg(map)
         : path.ends_with(".json") ? ranklab::viz::parity_file_text(map)
                                   : ranklab::viz::parity_page(map);
}

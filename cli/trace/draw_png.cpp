// The part of writing pictures as PNG for other commands that is in the viz module (cli/common/picture_file.h).
#include <string>

#include "viz/app/drawing_image.h"

extern "C" void ranklab_draw_png(const ranklab::viz::Drawing& drawing, ranklab::viz::Ground ground, std::string& png) {
  png = ranklab::viz::png_of(drawing, ground);
}

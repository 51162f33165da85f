// The viz module's part of pictures that other commands write as PNG (cli/common/picture_file.h).
#include <string>

#include "viz/app/drawing_image.h"

extern "C" void ranklab_draw_png(const ranklab::viz::Drawing& drawing, ranklab::viz::Ground ground, std::string& png) {
  png = ranklab::viz::png_of(drawing, ground);
}

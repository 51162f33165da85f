// Several images of one size as an animated PNG. Programs without support for animation read it as a normal PNG and
// show its first frame. Each further frame writes only the pixels that changed. Source: APNG specification 1.0
// (Mozilla, 2008), chunks acTL, fcTL and fdAT; part of the PNG specification since its third edition. Cost: two images
// and the file in memory. Thread rule: one thread.
#pragma once
#include <string>

#include "viz/app/image.h"

namespace ranklab::viz {

class Animation {
 public:
  explicit Animation(int milliseconds_per_frame) : milliseconds_(milliseconds_per_frame) {}

  // REQUIRES: the same size as the first frame.
  void add(const Image& frame);
  // The file; the animation repeats without end. REQUIRES: a frame was added.
  std::string png() const;

 private:
  void control(int width, int height, int x, int y);

  int milliseconds_;
  uint32_t frames_ = 0, chunks_ = 0;
  Image last_;
  std::string head_, body_;  // the chunks before the animation's, and those from the first frame on
};

}  // namespace ranklab::viz

// An 8-bit RGBA image and its PNG file. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab::viz {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint32_t> rgba;  // row by row from the top; bytes r, g, b, a in memory

  bool operator==(const Image&) const = default;
};

// Encodes the image as a PNG of RGBA pixels. Equal images give equal bytes.
std::string png_bytes(const Image& image);
// Both throw kIo; the file appears completely or not at all.
void write_png(const Image& image, const std::string& path);
void write_text_file(const std::string& text, const std::string& path);
// Throws kBadFile.
Image read_png(const std::string& path);

}  // namespace ranklab::viz

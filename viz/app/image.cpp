#include "viz/app/image.h"

#include <png.h>

#include <string_view>

#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/input_file.h"

namespace ranklab::viz {
namespace {

void write_whole(std::string_view bytes, const std::string& path) {
  write_file_atomically(
      path, bytes,
      {.where = "viz", .what = "cannot write the file", .fix = "check the folder, its permissions and the free space"});
}

png_image description(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGBA;
  return png;
}

}  // namespace

std::string png_bytes(const Image& image) {
  png_image png = description(image);
  png_alloc_size_t size = 0;
  std::string bytes;
  if (png_image_write_to_memory(&png, nullptr, &size, 0, image.rgba.data(), 0, nullptr) != 0) bytes.resize(size);
  const bool written =
      !bytes.empty() && png_image_write_to_memory(&png, bytes.data(), &size, 0, image.rgba.data(), 0, nullptr) != 0;
  RANKLAB_CHECK(written, ErrorKind::kInternal, .where = "viz", .what = "libpng refuses a picture", .got = png.message);
  bytes.resize(size);
  return bytes;
}

void write_png(const Image& image, const std::string& path) { write_whole(png_bytes(image), path); }

void write_text_file(const std::string& text, const std::string& path) { write_whole(text, path); }

Image read_png(const std::string& path) {
  Image image;
  png_image png = description(image);
  constexpr uint64_t kMostBytes = 256 << 20;
  const std::string bytes = read_whole_file(path, kMostBytes, {.where = "viz", .fix = "check the path"});
  bool read = png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0;
  if (read) {
    png.format = PNG_FORMAT_RGBA;
    image.width = static_cast<int>(png.width);
    image.height = static_cast<int>(png.height);
    image.rgba.resize(size_t{png.width} * png.height);
    read = png_image_finish_read(&png, nullptr, image.rgba.data(), 0, nullptr) != 0;
  }
  RANKLAB_CHECK(read, ErrorKind::kBadFile, .where = "viz", .what = "cannot read a picture",
                .got = path + ": " + png.message, .fix = "write it again");
  return image;
}

}  // namespace ranklab::viz

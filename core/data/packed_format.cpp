#include "core/data/packed_format.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using namespace std::string_view_literals;

struct PackedFormat {
  std::string_view begins;
  const char *what, *before, *behind;  // the command that unpacks the file, before and after the file's name
};

// Parquet's magic is followed by the header of its first page, whose first field has this byte.
constexpr std::array kPackedFormats = {
    PackedFormat{"\x1f\x8b"sv, "a file that gzip packed", "unpack it: gzip -dk ", ""},
    PackedFormat{"\x28\xb5\x2f\xfd"sv, "a file that zstd packed", "unpack it: zstd -d ", ""},
    PackedFormat{"\xfd"
                 "7zXZ\0"sv,
                 "a file that xz packed", "unpack it: xz -dk ", ""},
    PackedFormat{"BZh91AY&SY"sv, "a file that bzip2 packed", "unpack it: bzip2 -dk ", ""},
    PackedFormat{"PK\x03\x04"sv, "a zip archive", "unpack it: unzip ", ""},
    PackedFormat{"PAR1\x15"sv, "a table of Parquet", "write it as lines of JSON, in Python: pandas.read_parquet('",
                 "').to_json('texts.jsonl', orient='records', lines=True)"},
    PackedFormat{"ARROW1\0\0"sv, "a table of Arrow", "write it as lines of JSON, in Python: pandas.read_feather('",
                 "').to_json('texts.jsonl', orient='records', lines=True)"},
    PackedFormat{"\x93NUMPY"sv, "an array of NumPy",
                 "write its tokens as 16-bit numbers, for data prepare --from nanogpt; in Python: numpy.load('",
                 "').astype('uint16').tofile('tokens.bin')"},
};

}  // namespace

void require_unpacked(const std::string& path, std::string_view begins, const std::string& where) {
  const auto found =
      std::ranges::find_if(kPackedFormats, [&](const PackedFormat& one) { return begins.starts_with(one.begins); });
  if (found == kPackedFormats.end()) return;
  const std::string name = *found->behind == '\0' ? shell_path(path) : path;
  throw Error(ErrorKind::kInvalidArgument, {.where = where,
                                            .what = quote(path) + " is not text",
                                            .got = found->what,
                                            .want = "a file of text, or of lines of JSON",
                                            .fix = found->before + name + found->behind});
}

void require_unpacked(const std::string& path, const std::string& where) {
  const InputFile file(path, {.where = "data", .fix = "pass readable files"});
  std::array<char, 16> begins{};
  require_unpacked(path, {begins.data(), file.read_at(0, begins)}, where);
}

}  // namespace ranklab

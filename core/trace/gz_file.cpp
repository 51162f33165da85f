#include "core/trace/gz_file.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/input_file.h"

namespace ranklab {
namespace {

ErrorText words(const std::string& path) {
  return {.where = "trace file " + path,
          .what = "cannot write the file",
          .fix = "check that the folder exists, is writable, and has space"};
}

}  // namespace

GzWriter::GzWriter(std::string path) : file_(path, words(path)) {
  errno = 0;
  const int own = ::dup(file_.descriptor());
  // Mode "T" writes without a gzip header, so both forms can use the same writer.
  if (own >= 0) stream_ = gzdopen(own, path.ends_with(".gz") ? "wb6" : "wbT");
  if (stream_ == nullptr) {
    const int reason = errno;
    if (own >= 0) ::close(own);
    errno = reason;
    fail("open");
  }
  gzbuffer(static_cast<gzFile>(stream_), 1 << 17);
}

GzWriter::~GzWriter() {
  if (stream_ != nullptr) gzclose(static_cast<gzFile>(stream_));
}

// zlib does not set errno for its own errors.
void GzWriter::fail(const char* call) const {
  if (errno == 0) errno = ENOMEM;
  file_.refuse(call);
}

void GzWriter::write(std::string_view text) {
  if (text.empty()) return;
  errno = 0;
  const int written = gzwrite(static_cast<gzFile>(stream_), text.data(), static_cast<unsigned>(text.size()));
  if (written != static_cast<int>(text.size())) fail("write");
}

void GzWriter::flush() {
  errno = 0;
  if (gzflush(static_cast<gzFile>(stream_), Z_SYNC_FLUSH) != Z_OK) fail("write");
}

void GzWriter::commit() {
  errno = 0;
  if (gzclose(static_cast<gzFile>(std::exchange(stream_, nullptr))) != Z_OK) fail("write");
  file_.commit();
}

GzReader::GzReader(std::string path) : path_(std::move(path)) {
  const InputFile input(path_, {.where = "trace file", .fix = "check the path"});
  const int own = ::dup(input.descriptor());
  if (own >= 0) file_ = gzdopen(own, "rb");
  if (file_ == nullptr && own >= 0) ::close(own);
  RANKLAB_CHECK(file_ != nullptr, ErrorKind::kIo, .where = "trace file " + path_, .what = "cannot open the file",
                .got = own < 0 ? std::strerror(errno) : "no memory", .want = "a .json or .json.gz trace",
                .fix = "free memory or file descriptors");
  gzbuffer(static_cast<gzFile>(file_), 1 << 17);
}

GzReader::~GzReader() { gzclose(static_cast<gzFile>(file_)); }

size_t GzReader::read(char* buffer, size_t size) {
  const auto file = static_cast<gzFile>(file_);
  const int got = gzread(file, buffer, static_cast<unsigned>(std::min<size_t>(size, 1 << 30)));
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  // zlib does not know a descriptor's path and writes "<fd:4>: " in its place.
  std::string reason = code == Z_ERRNO ? std::strerror(errno) : message;
  if (reason.starts_with("<fd:")) reason.erase(0, reason.find(": ") + 2);
  // zlib delivers the data of a truncated file before it reports the truncation.
  const bool sound = code == Z_OK || code == Z_STREAM_END || (code == Z_BUF_ERROR && got > 0);
  RANKLAB_CHECK(got >= 0 && sound, code == Z_ERRNO ? ErrorKind::kIo : ErrorKind::kBadFile,
                .where = "trace file " + path_, .what = "cannot read on", .got = reason, .want = "a whole file",
                .fix = "the file is damaged or was cut off: write it again");
  // A trace compresses 10 to 30 times. A file that expands far more than that is not a trace.
  constexpr int64_t kFreeBytes = int64_t{64} << 20, kLargestRatio = 200;
  const int64_t unpacked = gztell(file), packed = gzoffset(file);
  RANKLAB_CHECK(unpacked <= kFreeBytes + kLargestRatio * packed, ErrorKind::kBadFile, .where = "trace file " + path_,
                .what = "the file unpacks to more than a trace can",
                .got = std::to_string(packed) + " bytes into " + std::to_string(unpacked),
                .want = "at most " + std::to_string(kLargestRatio) + " times as many",
                .fix = "the file is damaged: write it again");
  return static_cast<size_t>(got);
}

}  // namespace ranklab

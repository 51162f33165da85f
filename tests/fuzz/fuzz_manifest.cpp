// Any bytes as a checkpoint: what stands before the first zero byte is its manifest, the rest a file of tensors. Once
// as they are, and once with the manifest's own hash, and the size and hash of the file it names, made right, so that
// what stands behind them is reached. The reader refuses with ranklab's own error, or the manifest written again is the
// same manifest, and every tensor can be read whole and in halves that agree with it.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/manifest_hash.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read_tensors(const std::string& folder) {
  const Checkpoint checkpoint(folder);
  for (const auto& [name, tensor] : checkpoint.manifest().tensors) {
    const std::vector<std::byte> whole = checkpoint.read(name);
    const TensorSlice all = whole_slice(tensor.shape);
    const int64_t middle = all.elements() / 2;
    for (const auto& [begin, end] : {std::pair(int64_t{0}, middle), std::pair(middle, all.elements())}) {
      if (begin == end) continue;
      std::vector<std::byte> half(static_cast<size_t>(end - begin) * size_bytes(tensor.type));
      checkpoint.read(name, {.begin = begin, .end = end}, half);
      const auto* part = whole.data() + static_cast<size_t>(begin) * size_bytes(tensor.type);
      require(std::equal(half.begin(), half.end(), part));
    }
  }
}

// Throws kBadFile where the text is none.
CheckpointManifest parse(const std::string& text) {
  const CheckpointManifest manifest = parse_manifest(text, "manifest");
  require(parse_manifest(manifest_text(manifest), "again") == manifest);
  return manifest;
}

void read_folder(const ScratchFolder& folder, const std::string& text) {
  folder.write(kManifestName, text);
  try {
    read_tensors(folder.path());
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kBadFile || error.kind() == ErrorKind::kIo);  // a file that is not there
  }
}

void read_mended(const ScratchFolder& folder, std::string text, const std::string& file) {
  if (text.size() < kHashTail) return;
  text.replace(text.size() - kHashTail, kHashTail, std::string(kHashDigits, '0') + "\"}\n");
  text.replace(text.size() - kHashTail, kHashDigits, xxh3_text(manifest_hash(text)));
  try {
    CheckpointManifest manifest = parse(text);
    const SafetensorsFile opened(file);
    for (CheckpointFile& named : manifest.files) {
      named.bytes = opened.file_bytes();
      if (opened.checksums()) named.header_xxh3 = opened.checksums()->header;
    }
    read_folder(folder, manifest_text(manifest));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kBadFile);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_manifest");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(bytes.find('\0'), bytes.size());
  const std::string text(bytes.substr(0, cut));
  const std::string file = kFolder.write("rank_00000.safetensors", cut < size ? bytes.substr(cut + 1) : "");
  read_folder(kFolder, text);
  read_mended(kFolder, text, file);
  return 0;
}

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/manifest_hash.h"
#include "core/checkpoint/read_only_file.h"
#include "core/checkpoint/safetensors_header.h"

namespace ranklab {
namespace {

using nlohmann::json;

constexpr int kDeepest = 8;  // tensors / NAME / slices / [i] / partition / ranges / [i]

// Reads members and elements of one manifest; each refusal names the file and the location in it.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  [[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want) const {
    refuse_checkpoint_file(path_, what, got, want);
  }

  json parse(std::string_view text) const {
    std::vector<std::set<std::string>> keys(kDeepest + 1);
    const auto check = [&](int depth, json::parse_event_t event, json& value) {
      const bool opens = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
      if (opens && depth >= kDeepest)
        refuse("the manifest is nested too deep", std::to_string(depth) + " levels", "a manifest of a checkpoint");
      if (event == json::parse_event_t::object_start) keys[static_cast<size_t>(depth) + 1].clear();
      if (event != json::parse_event_t::key) return true;
      if (!keys[static_cast<size_t>(depth)].insert(value.get<std::string>()).second)
        refuse("a key appears twice", quote(printable(value.get<std::string>())), "each key once");
      return true;
    };
    try {
      return json::parse(text, check);
    } catch (const json::exception& error) {
      refuse("the manifest is not JSON", printable(error.what(), 160), "what ranklab wrote");
    }
  }

  const json& member(const json& object, const char* key, json::value_t type) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse(std::string(key) + " is missing", "none", "a manifest of a checkpoint");
    const bool right = type == json::value_t::number_integer ? found->is_number_integer() : found->type() == type;
    if (!right) refuse(std::string(key) + " has the wrong type", printable(found->dump()), json(type).type_name());
    return *found;
  }
  std::string text(const json& object, const char* key) const {
    return member(object, key, json::value_t::string).get<std::string>();
  }
  int64_t integer(const json& value, const char* key) const {
    try {
      return json_integer<int64_t>(value, key);
    } catch (const Error& error) {
      refuse(error.text().what, printable(error.text().got), error.text().want);
    }
  }
  int64_t count(const json& object, const char* key) const {
    const int64_t value = integer(member(object, key, json::value_t::number_integer), key);
    if (value < 0) refuse(std::string(key) + " is negative", std::to_string(value), "0 or more");
    return value;
  }

  std::map<std::string, std::string> texts(const json& object, const char* key) const {
    std::map<std::string, std::string> values;
    for (const auto& [name, value] : member(object, key, json::value_t::object).items()) {
      if (!value.is_string())
        refuse(std::string(key) + " holds a value that is not text", quote(printable(name)), "text");
      values[name] = value.get<std::string>();
    }
    return values;
  }
  std::map<std::string, int64_t> integers(const json& object, const char* key) const {
    std::map<std::string, int64_t> values;
    for (const auto& [name, value] : member(object, key, json::value_t::object).items())
      values[name] = integer(value, key);
    return values;
  }
  std::map<std::string, double> numbers(const json& object, const char* key) const {
    std::map<std::string, double> values;
    for (const auto& [name, value] : member(object, key, json::value_t::object).items()) {
      if (!value.is_number())
        refuse(std::string(key) + " holds a value that is not a number", quote(printable(name)), "numbers");
      values[name] = value.get<double>();
    }
    return values;
  }

  CheckpointFile file(const json& object) const {
    CheckpointFile file;
    if (!object.is_object()) refuse("files holds an entry that is not a file", printable(object.dump()), "objects");
    file.name = text(object, "name");
    if (!is_plain_file_name(file.name))
      refuse("a file's name is not plain", quote(printable(file.name)), "a name inside the folder");
    file.bytes = static_cast<uint64_t>(count(object, "bytes"));
    const std::string hash = text(object, "header_xxh3");
    if (!parse_xxh3_text(hash, file.header_xxh3))
      refuse(quote(file.name) + " has no hash", quote(printable(hash)), "16 digits");
    return file;
  }

  SlicePartition partition(const json& object) const {
    SlicePartition partition;
    const int64_t dim = integer(member(object, "dim", json::value_t::number_integer), "dim");
    if (dim < -1 || dim > 64) refuse("dim is out of range", std::to_string(dim), "-1 (not cut) to 64");
    partition.dim = static_cast<int>(dim);
    for (const json& range : member(object, "ranges", json::value_t::array)) {
      if (!range.is_array() || range.size() != 2)
        refuse("a range has the wrong type", printable(range.dump()), "[begin, end]");
      partition.ranges.emplace_back(integer(range[0], "ranges"), integer(range[1], "ranges"));
    }
    return partition;
  }

  StoredSlice slice(const json& object, const std::string& tensor, const std::set<std::string>& files) const {
    if (!object.is_object()) refuse("a slice has the wrong type", printable(object.dump()), "an object");
    StoredSlice slice{.file = text(object, "file"), .key = text(object, "key")};
    if (!files.contains(slice.file))
      refuse("tensor " + quote(tensor) + " lies in a file that is not listed", quote(printable(slice.file)),
             "one of the files");
    slice.slice.partition = partition(member(object, "partition", json::value_t::object));
    slice.slice.begin = count(object, "begin");
    slice.slice.end = count(object, "end");
    return slice;
  }

  StoredTensor tensor(const std::string& name, const json& object, const std::set<std::string>& files) const {
    if (const std::string fault = fault_of_tensor_name(name); !fault.empty())
      refuse("a tensor's name " + fault, quote(printable(name)), "printable UTF-8");
    if (!object.is_object()) refuse("a tensor has the wrong type", printable(object.dump()), "an object");
    StoredTensor tensor;
    const std::string type = text(object, "dtype");
    if (!find_tensor_type(type, tensor.type))
      refuse("tensor " + quote(name) + ": its type is unknown", quote(printable(type)), tensor_type_names());
    for (const json& size : member(object, "shape", json::value_t::array))
      tensor.shape.push_back(integer(size, "shape"));
    for (const json& one : member(object, "slices", json::value_t::array)) {
      StoredSlice stored = slice(one, name, files);
      if (const std::string fault = fault_of_slice(tensor.shape, stored.slice); !fault.empty())
        refuse("tensor " + quote(name) + ": a slice is invalid: " + fault, printable(one.dump(), 200),
               "a slice of " + printable(shape_text(tensor.shape)));
      tensor.slices.push_back(std::move(stored));
    }
    return tensor;
  }

 private:
  const std::string& path_;
};

void check_hash(const Reader& reader, std::string_view text) {
  if (text.size() < kHashTail) reader.refuse("the manifest is cut off", std::to_string(text.size()) + " bytes", "more");
  const std::string digits(text.substr(text.size() - kHashTail, kHashDigits));
  const std::string tail = "\"}\n";
  uint64_t want = 0;
  if (text.substr(text.size() - tail.size()) != tail || !parse_xxh3_text(digits, want))
    reader.refuse("the manifest is damaged or cut off", "an end of " + quote(printable(digits)), "its hash");
  if (const uint64_t got = manifest_hash(text); got != want)
    reader.refuse("the manifest is damaged", "xxh3 " + xxh3_text(got), "xxh3 " + xxh3_text(want));
}

void check_format(const Reader& reader, const json& root) {
  if (!root.is_object()) reader.refuse("this is not a manifest", root.type_name(), "an object");
  const std::string format = reader.text(root, "format");
  if (format != "ranklab checkpoint")
    reader.refuse("this is not a manifest of a checkpoint", quote(printable(format)), "\"ranklab checkpoint\"");
  const int64_t version = reader.count(root, "format_version");
  if (version != kCheckpointFormat)
    reader.refuse("the version of the format is not supported", std::to_string(version),
                  std::to_string(kCheckpointFormat) + " (a newer ranklab may read it)");
}

}  // namespace

bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name.find_first_not_of(kPlain) == name.npos;
}

CheckpointManifest parse_manifest(std::string_view text, const std::string& path) {
  const Reader reader(path);
  check_hash(reader, text);
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    reader.refuse("a zero byte in the manifest", "byte " + std::to_string(zero), "JSON");
  const json root = reader.parse(text);
  check_format(reader, root);
  CheckpointManifest manifest{.step = reader.count(root, "step"),
                              .updates = reader.count(root, "updates"),
                              .consumed_samples = reader.count(root, "consumed_samples"),
                              .config = reader.texts(root, "config"),
                              .model = reader.texts(root, "model"),
                              .layout = reader.integers(root, "layout"),
                              .data = reader.texts(root, "data"),
                              .metrics = reader.numbers(root, "metrics")};
  if (root.contains("skipped_samples")) manifest.skipped_samples = reader.count(root, "skipped_samples");
  if (root.contains("loss_scale")) manifest.loss_scale = reader.numbers(root, "loss_scale");
  if (root.contains("sentinels")) manifest.sentinels = reader.numbers(root, "sentinels");
  if (root.contains("tokenizer_xxh3")) {
    manifest.tokenizer_xxh3 = reader.text(root, "tokenizer_xxh3");
    if (uint64_t hash = 0; !parse_xxh3_text(manifest.tokenizer_xxh3, hash))
      reader.refuse("the tokenizer has no hash", quote(printable(manifest.tokenizer_xxh3)), "16 digits");
  }
  std::set<std::string> files;
  for (const json& file : reader.member(root, "files", json::value_t::array)) {
    manifest.files.push_back(reader.file(file));
    if (!files.insert(manifest.files.back().name).second)
      reader.refuse("a file is listed twice", quote(manifest.files.back().name), "each once");
  }
  // each may be used only once: a small file must not describe a huge model
  std::set<std::pair<std::string, std::string>> keys;
  for (const auto& [name, tensor] : reader.member(root, "tensors", json::value_t::object).items()) {
    manifest.tensors[name] = reader.tensor(name, tensor, files);
    for (const StoredSlice& slice : manifest.tensors[name].slices) {
      if (!keys.emplace(slice.file, slice.key).second)
        reader.refuse("one stored tensor is used twice", quote(printable(slice.key)) + " of " + quote(slice.file),
                      "each once");
    }
  }
  return manifest;
}

CheckpointManifest read_manifest(const std::string& path) {
  const std::string text =
      read_whole_file(path, kMostManifestBytes,
                      {.where = "checkpoint", .fix = "check the path and its permissions", .follow_links = false});
  return parse_manifest(text, path);
}

}  // namespace ranklab

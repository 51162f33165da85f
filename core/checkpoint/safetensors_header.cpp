#include "core/checkpoint/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/header_sax.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

// Tensors without bytes sort first among those with the same offset.
void check_layout(const std::vector<TensorEntry>& tensors, uint64_t data_bytes, const std::string& path) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const TensorEntry* t) { return std::pair(t->begin, t->end); });
  uint64_t end = 0;
  for (const TensorEntry* tensor : order) {
    if (tensor->begin != end)
      refuse_checkpoint_file(
          path, "tensor " + quote(tensor->name) + (tensor->begin < end ? " overlaps another" : " follows a hole"),
          "data_offsets from " + std::to_string(tensor->begin), "from " + std::to_string(end));
    end = tensor->end;
  }
  if (end == data_bytes) return;
  const std::string after = order.empty() ? "" : ": tensor " + quote(order.back()->name) + " is the last one";
  refuse_checkpoint_file(path, (end > data_bytes ? "the file is cut off" : "the file is too long") + after,
                         std::to_string(data_bytes) + " bytes of data", std::to_string(end) + " bytes");
}

void check_size(const TensorEntry& tensor, const std::string& path) {
  const std::string offsets = "data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
  if (tensor.begin > tensor.end)
    refuse_checkpoint_file(path, "tensor " + quote(tensor.name) + " ends before it begins", offsets, "begin <= end");
  const std::string shape = std::string(name(tensor.type)) + " " + shape_text(tensor.shape);
  uint64_t bytes = 0;
  if (!tensor_bytes(tensor.shape, tensor.type, bytes))
    refuse_checkpoint_file(path, "tensor " + quote(tensor.name) + " is larger than any file", shape,
                           "at most 2^64 bytes");
  if (bytes != tensor.size_bytes())
    refuse_checkpoint_file(path, "tensor " + quote(tensor.name) + " does not have the size of its shape", offsets,
                           std::to_string(bytes) + " bytes for " + shape);
}

// Terminals interpret U+0080 to U+009F like ASCII's control characters; in UTF-8 they are 0xc2 and a byte below 0xa0.
bool is_control(std::string_view text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte < ' ' || byte == 0x7f) return true;
  return byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
}

}  // namespace

std::string fault_of_tensor_name(std::string_view name) {
  constexpr size_t kLongest = 1024;
  if (name.empty()) return "is empty";
  if (name.size() > kLongest) return "is longer than " + std::to_string(kLongest) + " bytes";
  if (name == "__metadata__") return "is the one of the metadata";
  for (size_t i = 0; i < name.size(); ++i) {
    if (is_control(name, i)) return "has a control character";
  }
  return {};
}

bool tensor_bytes(std::span<const int64_t> shape, TensorType type, uint64_t& bytes) {
  bytes = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return false;
  }
  return !__builtin_mul_overflow(bytes, size_bytes(type), &bytes);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path) {
  if (json.empty() || json[0] != '{')
    refuse_checkpoint_file(path, "this is not a safetensors file",
                           "a header that begins with " + quote(printable(json.substr(0, 1))),
                           "JSON that begins with '{'");
  // The JSON library treats a zero byte as the end and would ignore what follows.
  if (const size_t zero = json.find('\0'); zero != std::string_view::npos)
    refuse_checkpoint_file(path, "a zero byte in the header", "byte " + std::to_string(zero), "JSON");
  HeaderSax reader(path);
  nlohmann::json::sax_parse(json, &reader);
  SafetensorsHeader header = reader.take();
  for (const TensorEntry& tensor : header.tensors) check_size(tensor, path);
  check_layout(header.tensors, data_bytes, path);
  std::ranges::sort(header.tensors, {}, &TensorEntry::name);
  return header;
}

std::string safetensors_header_json(std::span<const TensorEntry> tensors,
                                    const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  // Appends straight to the vector of pairs: operator[] of an ordered object would scan all earlier keys.
  auto& members = json.get_ref<nlohmann::ordered_json::object_t&>();
  for (const TensorEntry& tensor : tensors) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    entry["dtype"] = name(tensor.type);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {tensor.begin, tensor.end};
    members.push_back({tensor.name, std::move(entry)});
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kInvalidArgument, {.where = "checkpoint",
                                              .what = "a tensor's name or the metadata is not text",
                                              .got = error.what(),
                                              .want = "UTF-8"});
  }
  constexpr size_t kAlign = 8;
  text.append((kAlign - text.size() % kAlign) % kAlign, ' ');
  return text;
}

}  // namespace ranklab

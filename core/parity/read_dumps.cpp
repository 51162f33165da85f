#include "core/parity/read_dumps.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/safetensors.h"
#include "core/parity/dump_metadata.h"
#include "core/parity/epsilon.h"
#include "core/runtime/checkpoint/snapshot.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

at::ScalarType scalar_type_of(TensorType type, const std::string& where) {
  if (const std::optional<at::ScalarType> of_state = scalar_type(type)) return *of_state;
  if (type == TensorType::kI32) return at::kInt;
  if (type == TensorType::kBool) return at::kBool;
  throw Error(ErrorKind::kBadFile, {.where = where,
                                    .what = "tensors of this type are not compared",
                                    .got = std::string(name(type)),
                                    .want = "F64, F32, BF16, F16, I64, I32 or BOOL",
                                    .fix = "write it as F32"});
}

// The numbered entries of a folder, by number: "step-3" under 3.
std::map<int64_t, fs::path> numbered(const fs::path& folder, const std::string& prefix, const std::string& suffix) {
  std::map<int64_t, fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(prefix) || !file.ends_with(suffix)) continue;
    const std::string digits = file.substr(prefix.size(), file.size() - prefix.size() - suffix.size());
    if (digits.empty() || digits.size() > 9 ||
        !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
      continue;
    entries[std::stoll(digits)] = entry.path();
  }
  RANKLAB_CHECK(!error, ErrorKind::kIo, .where = "dumps", .what = "cannot read folder " + quote(folder.string()),
                .got = error.message(), .fix = "pass a folder that `train --dump` has written");
  RANKLAB_CHECK(!entries.empty(), ErrorKind::kIo, .where = "dumps", .what = "the folder holds no dumped tensors",
                .got = quote(folder.string()), .want = prefix + "N" + suffix,
                .fix = "see docs/parity.md, Files of other programs");
  return entries;
}

class RankFile {
 public:
  RankFile(const std::string& path, int rank, int64_t step) : file_(path), rank_(rank), step_(step) {}

  std::string coordinates() const {
    const auto found = file_.metadata().find("coordinates");
    return found == file_.metadata().end() ? "one rank" : found->second;
  }
  void read(ParityRecord& record) const {
    int order = 0;
    for (const std::string& name : names()) {
      if (!has_a_place(name)) continue;
      const TensorEntry& entry = file_.tensor(name);
      const std::string where = file_.path() + ": " + name;
      const at::ScalarType type = scalar_type_of(entry.type, where);
      const std::vector<std::byte> bytes = file_.read(entry);
      const at::Tensor value = at::empty(entry.shape, type);
      std::ranges::copy(bytes, static_cast<std::byte*>(value.mutable_data_ptr()));
      GlobalSlice slice = slice_of(name, entry.shape);
      RANKLAB_CHECK(slice.elements() == value.numel(), ErrorKind::kBadFile, .where = where,
                    .what = "the slice has a different number of elements than the tensor",
                    .got = std::to_string(slice.elements()), .want = std::to_string(value.numel()),
                    .fix = "write the ranges that this rank's tensor holds");
      if (at::isFloatingType(type) && epsilon_of(type) > epsilon_of(record.type)) record.type = type;
      record.tensors[key_of(name)].push_back(
          {.rank = rank_, .order = order++, .slice = std::move(slice), .value = value.flatten()});
    }
  }

 private:
  Json metadata(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) return {};
    Json json = Json::parse(found->second, nullptr, false);
    RANKLAB_CHECK(!json.is_discarded(), ErrorKind::kBadFile, .where = file_.path(),
                  .what = "metadata " + quote(key) + " is not JSON", .got = quote(found->second.substr(0, 60)),
                  .want = "a list of names", .fix = "see docs/parity.md, Files of other programs");
    return json;
  }

  // The tensors' names in the order in which they were computed; names that "order" does not contain come last.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    std::set<std::string> seen;
    const Json order = metadata("order");
    for (const Json& one : order.is_array() ? order : Json::array())
      if (one.is_string() && file_.find(one.get<std::string>()) != nullptr &&
          seen.insert(one.get<std::string>()).second)
        names.push_back(one.get<std::string>());
    for (const TensorEntry& entry : file_.tensors())
      if (!seen.contains(entry.name)) names.push_back(entry.name);
    return names;
  }

  // Whether a tensor can be compared. A microbatch's tensor without a slice cannot, since its place in the batch is
  // unknown, nor can some inputs in ranklab's dumps, which depend on the layout.
  bool has_a_place(const std::string& text) const {
    const bool of_microbatch = std::ranges::count(text, '/') == 2;
    if (of_microbatch && !file_.metadata().contains("slice/" + text)) return false;
    const auto writer = file_.metadata().find("writer");
    const TensorKey key = key_of(text);
    return writer == file_.metadata().end() || writer->second != "ranklab" || key.kind != "input" ||
           !reads_residual_stream(key.name);
  }

  // "layers.1.attention/output/0", "grad/layers.1.attention.qkv.weight"
  TensorKey key_of(const std::string& text) const {
    if (text.starts_with("weight/")) return {step_, ParityPhase::kWeights, text.substr(7), "weight"};
    if (text.starts_with("grad/")) return {step_, ParityPhase::kBackward, text.substr(5), "grad"};
    const size_t slash = text.find('/');
    if (slash == std::string::npos) return {step_, ParityPhase::kLoss, text, ""};
    const std::string kind = text.substr(slash + 1, text.find('/', slash + 1) - slash - 1);
    const bool backward = kind.starts_with("grad");
    const bool forward = kind == "input" || kind == "output" || kind == "residual_stream";
    return {step_,
            backward  ? ParityPhase::kBackward
            : forward ? ParityPhase::kForward
                      : ParityPhase::kUpdate,
            text.substr(0, slash), kind};
  }

  GlobalSlice slice_of(const std::string& name, const std::vector<int64_t>& local) const {
    const auto found = file_.metadata().find("slice/" + name);
    if (found == file_.metadata().end()) return whole_slice(local);
    DumpSlice slice = parse_dump_slice(found->second, local, file_.path(), name);
    return {.shape = std::move(slice.shape),
            .positions = std::move(slice.positions),
            .begin = slice.begin,
            .end = slice.end};
  }

  SafetensorsFile file_;
  int rank_;
  int64_t step_;
};

}  // namespace

ParityRecord read_dumps(const std::string& folder) {
  ParityRecord record{.title = folder, .type = at::kDouble};
  std::vector<std::string> coordinates;
  for (const auto& [step, steps] : numbered(folder, "step-", "")) {
    std::vector<std::string> here;
    for (const auto& [rank, path] : numbered(steps, "rank-", ".safetensors")) {
      const RankFile file(path.string(), static_cast<int>(rank), step);
      RANKLAB_CHECK(rank < (1 << 16), ErrorKind::kBadFile, .where = path.string(), .what = "not the number of a rank",
                    .got = std::to_string(rank), .want = "0 to 65535", .fix = "number ranks from 0");
      here.resize(static_cast<size_t>(rank) + 1, "one rank");
      here.back() = file.coordinates();
      file.read(record);
    }
    if (coordinates.size() < here.size()) coordinates = here;
  }
  record.mesh = ParityMesh(coordinates);
  return record;
}

}  // namespace ranklab

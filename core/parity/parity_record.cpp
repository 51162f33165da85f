#include "core/parity/parity_record.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <tuple>

#include "core/base/error.h"
#include "core/parity/dump_metadata.h"

namespace ranklab {
namespace {

constexpr std::array<std::string_view, 7> kPhases = {"batch",    "weights",       "forward", "loss",
                                                     "backward", "gradient norm", "update"};

// The depth of a module: 3 + 1 for "layers.3.attention", 0 for what comes before the layers, a large number for what
// comes after them. Multi-token prediction modules read the same input as the head and get an even larger number, so
// that they come first in the backward.
int64_t depth_of(const std::string& name) {
  constexpr int64_t kBehind = int64_t{1} << 40;
  if (name.starts_with("embedding") || name.starts_with("position")) return 0;
  for (const auto& [prefix, base] : {std::pair<std::string, int64_t>{"layers.", 1}, {"mtp.", 2 * kBehind}}) {
    if (!name.starts_with(prefix)) continue;
    int64_t number = 0;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    return base + number;
  }
  return kBehind;
}

int first_order(const std::vector<TensorPiece>& pieces) {
  const auto first =
      std::ranges::min_element(pieces, {}, [](const TensorPiece& piece) { return std::pair(piece.rank, piece.order); });
  return first->order;
}

// The position of a parameter's gradient in the order: after the gradient of its module's output has arrived.
int order_of_grad(const ParityRecord& record, const TensorKey& key, int otherwise) {
  for (std::string path = key.name; !path.empty();) {
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) break;
    path.resize(dot);
    const auto found = record.tensors.find({key.step, key.phase, path, "grad_output"});
    if (found != record.tensors.end()) return first_order(found->second);
  }
  return otherwise;
}

}  // namespace

ParityMesh::Numbers ParityMesh::filled(int value) {
  Numbers numbers;
  numbers.fill(value);
  return numbers;
}

ParityMesh::ParityMesh(const DeviceMesh& mesh) : places_(), labels_() {
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    places_.push_back(filled(0));
    labels_.push_back(mesh.label(rank));
    for (size_t axis = 0; axis < sizes_.size(); ++axis) {
      sizes_[axis] = mesh.size(static_cast<Axis>(axis));
      places_.back()[axis] = mesh.coordinate(static_cast<Axis>(axis), rank);
    }
  }
}

ParityMesh::ParityMesh(const std::vector<std::string>& coordinates) : places_(), labels_() {
  for (const std::string& text : coordinates) {
    places_.push_back(filled(0));
    std::string label;
    for (const AxisPlace& one : parse_coordinates(text)) {
      sizes_[static_cast<size_t>(one.axis)] = one.size;
      places_.back()[static_cast<size_t>(one.axis)] = one.place;
      label += (label.empty() ? "" : " ") + std::string(ranklab::name(one.axis)) + std::to_string(one.place);
    }
    labels_.push_back(label.empty() ? "rank" + std::to_string(labels_.size()) : label);
  }
}

std::string_view name(ParityPhase phase) { return kPhases[static_cast<size_t>(phase)]; }

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

bool reads_residual_stream(const std::string& path) {
  return path.ends_with("norm") || path == "head" || (path.starts_with("layers.") && path.rfind('.') == 6);
}

std::string TensorKey::text() const { return kind.empty() ? name : name + " " + kind; }

std::vector<TensorKey> causal_order(const ParityRecord& record) {
  using Place = std::tuple<int64_t, ParityPhase, int64_t, int, bool, TensorKey>;
  std::vector<Place> places;
  for (const auto& [key, pieces] : record.tensors) {
    const bool backward = key.phase == ParityPhase::kBackward, grad = backward && key.kind == "grad";
    const int64_t depth = backward ? -depth_of(key.name) : depth_of(key.name);
    const int order = first_order(pieces);
    places.emplace_back(key.step, key.phase, depth, grad ? order_of_grad(record, key, order) : order, grad, key);
  }
  std::ranges::sort(places);
  std::vector<TensorKey> keys;
  for (Place& place : places) keys.push_back(std::get<TensorKey>(std::move(place)));
  return keys;
}

}  // namespace ranklab

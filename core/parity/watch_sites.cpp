#include "core/parity/watch_sites.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "core/base/checksum.h"
#include "core/base/text.h"
#include "core/runtime/text/gather_texts.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr uint64_t kExact = uint64_t{1} << 52;  // hashes are sent as fp64 numbers of the table
constexpr const char* kMoment = "moment";       // stands for any of the moments

const std::vector<std::string>& kinds_of_module(const std::string& path) {
  static const std::vector<std::string> all = {"output", "grad_output", "input", "grad_input"};
  static const std::vector<std::string> norm = {"output", "grad_output", "residual stream", "grad_input"};
  static const std::vector<std::string> outside = {"output", "grad_output", "grad_input"};
  if (!reads_residual_stream(path)) return all;
  return path.ends_with("norm") ? norm : outside;
}

template <typename Number>
std::string_view bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

void add_slice(Xxh3& hash, const GlobalSlice& slice) {
  hash.add(bytes_of(slice.shape));
  for (const std::vector<int64_t>& positions : slice.positions) {
    hash.add(bytes_of(positions));
    hash.add("|");
  }
  hash.add(std::to_string(slice.begin) + ":" + std::to_string(slice.end));
}

}  // namespace

std::string CopiesApart::text() const {
  std::vector<std::string> ranks;
  for (const int rank : wrong_ranks) ranks.push_back(std::to_string(rank));
  std::string text = key.text() + " (" + std::string(name(key.phase)) + "), " +
                     (ranks.size() == 1 ? "rank " : "ranks ") + join(ranks, ", ");
  for (const Explanation& one : why) text += "; " + one.what;
  return text;
}

WatchSites::WatchSites(CausalLm& model, Communicator& world, c10::Device device, RankTable& table) {
  std::string mine;
  for (const std::string& path : model.registry().hooks().paths()) mine += "m " + path + "\n";
  for (const Parameter* parameter : model.registry().parameters()) mine += "p " + parameter->name + "\n";
  for (const auto& [name, buffer] : model.buffers()) mine += "b " + name + "\n";
  const auto add = [&](Of of, const std::string& name) {
    if (place_.try_emplace({of, name}, sites_.size()).second)
      sites_.push_back({.of = of, .name = name, .module = static_cast<int>(sites_.size())});
  };
  for (const std::string& text : gather_texts(mine, world, device)) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      add(line[0] == 'm' ? Of::kModule : line[0] == 'p' ? Of::kParameter : Of::kBuffer, line.substr(2));
  }
  for (const char* number : {"grad_norm", "loss_scale"}) add(Of::kNorm, number);
  for (Site& site : sites_) {
    for (std::string path = site.name; site.of == Of::kParameter && path.find('.') != std::string::npos;) {
      path.resize(path.rfind('.'));
      const auto module = place_.find({Of::kModule, path});
      if (module == place_.end()) continue;
      site.module = static_cast<int>(module->second);
      break;
    }
  }
  slots_ = table.reserve(2 * sites_.size());
}

WatchSites::Of WatchSites::of(const TensorKey& key) {
  if (key.phase == ParityPhase::kNorm) return Of::kNorm;
  if (key.kind == "buffer") return Of::kBuffer;
  const bool parameter = key.kind == "weight" || key.kind == "grad" || key.phase == ParityPhase::kUpdate;
  return parameter ? Of::kParameter : Of::kModule;
}

void WatchSites::choose(int64_t step, int64_t count) {
  static const std::vector<std::string> of_parameter = {"grad", "weight", "updated weight", kMoment};
  step_ = step;
  for (size_t i = 0; i < sites_.size(); ++i) {
    Site& site = sites_[i];
    if (site.of == Of::kBuffer) site.kind = "buffer";
    if (site.of == Of::kNorm) site.kind = site.name == "grad_norm" ? "clip factor" : "";
    if (site.of == Of::kBuffer || site.of == Of::kNorm) continue;
    const std::vector<std::string>& kinds = site.of == Of::kModule ? kinds_of_module(site.name) : of_parameter;
    site.kind = kinds[(i + static_cast<size_t>(count)) % kinds.size()];
  }
}

const WatchSites::Site* WatchSites::site_of(const TensorKey& key) const {
  const auto found = place_.find({of(key), key.name});
  if (found == place_.end()) return nullptr;
  const Site& site = sites_[found->second];
  const bool moment = key.phase == ParityPhase::kUpdate && key.kind != "updated weight";
  return site.kind == (moment ? kMoment : key.kind) ? &site : nullptr;
}

bool WatchSites::takes(const TensorKey& key) const { return site_of(key) != nullptr; }

void WatchSites::fill(const TensorPieces& mine, RankTable& table) const {
  struct Hashes {
    Xxh3 slices, values;
  };
  std::map<const Site*, Hashes> hashes;
  for (const auto& [key, pieces] : mine) {
    const Site* site = site_of(key);
    if (site == nullptr) continue;
    Hashes& hash = hashes[site];
    for (const TensorPiece& piece : pieces) {
      if (piece.value.numel() == 0) continue;
      hash.slices.add(key.kind);
      add_slice(hash.slices, piece.slice);
      hash.values.add(c10::toString(piece.value.scalar_type()));
      hash.values.add({static_cast<const char*>(piece.value.const_data_ptr()), piece.value.nbytes()});
    }
  }
  for (const auto& [site, hash] : hashes) {
    const size_t slot = slots_ + 2 * static_cast<size_t>(site - sites_.data());
    table.mine(slot) = static_cast<double>(hash.slices.value() % kExact);
    table.mine(slot + 1) = static_cast<double>(hash.values.value() % kExact);
  }
}

TensorKey WatchSites::key_of(const Site& site) const {
  ParityPhase phase = ParityPhase::kForward;
  if (site.of == Of::kNorm) phase = ParityPhase::kNorm;
  if (site.of == Of::kBuffer || site.kind == "weight") phase = ParityPhase::kWeights;
  if (site.kind.starts_with("grad")) phase = ParityPhase::kBackward;
  if (site.kind == "updated weight" || site.kind == kMoment) phase = ParityPhase::kUpdate;
  return {step_, phase, site.name, site.kind};
}

// Builds a record for causal_order() with one piece per site, ordered by the position of the site's module in the
// forward, for the backward in reverse.
std::vector<size_t> WatchSites::causal_places() const {
  ParityRecord sampled;
  std::map<TensorKey, size_t> place;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const TensorKey key = key_of(sites_[i]);
    const int order = key.phase == ParityPhase::kBackward ? -sites_[i].module : sites_[i].module;
    sampled.tensors[key] = {{.rank = 0, .order = order, .slice = {}, .value = {}}};
    place[key] = i;
  }
  std::vector<size_t> places;
  for (const TensorKey& key : causal_order(sampled)) places.push_back(place.at(key));
  return places;
}

std::vector<CopiesApart> WatchSites::apart(const RankTable& table, const ParityMesh& mesh) const {
  std::vector<CopiesApart> found;
  for (const size_t i : causal_places()) {
    const size_t slot = slots_ + 2 * i;
    std::map<double, double> first;  // the first value found for each slice
    std::vector<int> ranks;
    CopiesApart one{.key = key_of(sites_[i])};
    for (int rank = 0; rank < table.ranks(); ++rank) {
      const double slices = table.of(rank, slot), values = table.of(rank, slot + 1);
      if (std::isnan(slices)) continue;
      ranks.push_back(rank);
      if (first.try_emplace(slices, values).first->second != values) one.wrong_ranks.push_back(rank);
    }
    if (one.wrong_ranks.empty()) continue;
    one.why = explain_copies(mesh, ranks, [&](size_t a, size_t b) {
      return table.of(ranks[a], slot) == table.of(ranks[b], slot) &&
             table.of(ranks[a], slot + 1) != table.of(ranks[b], slot + 1);
    });
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace ranklab

#include "core/parity/piece_exchange.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "core/runtime/text/gather_texts.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using Json = nlohmann::json;

// What a rank has, in the order in which its bytes are sent.
struct Offer {
  TensorKey key;
  GlobalSlice slice;
  at::ScalarType type = at::kFloat;
  int64_t elements = 0;

  int64_t bytes() const { return elements * static_cast<int64_t>(c10::elementSize(type)); }
};

Json to_json(const TensorKey& key, const TensorPiece& piece) {
  return {key.step,
          static_cast<int>(key.phase),
          key.name,
          key.kind,
          piece.slice.shape,
          piece.slice.positions,
          piece.slice.begin,
          piece.slice.end,
          static_cast<int>(piece.value.scalar_type()),
          piece.value.numel()};
}

Offer offer_of(const Json& json) {
  return {.key = {json[0].get<int64_t>(), static_cast<ParityPhase>(json[1].get<int>()), json[2].get<std::string>(),
                  json[3].get<std::string>()},
          .slice = {.shape = json[4].get<std::vector<int64_t>>(),
                    .positions = json[5].get<std::vector<std::vector<int64_t>>>(),
                    .begin = json[6].get<int64_t>(),
                    .end = json[7].get<int64_t>()},
          .type = static_cast<at::ScalarType>(json[8].get<int>()),
          .elements = json[9].get<int64_t>()};
}

std::vector<std::vector<Offer>> all_offers(const TensorPieces& mine, Communicator& world, c10::Device device) {
  Json json = Json::array();
  for (const auto& [key, pieces] : mine)
    for (const TensorPiece& piece : pieces) json.push_back(to_json(key, piece));
  std::vector<std::vector<Offer>> all;
  for (const std::string& text : gather_texts(json.dump(), world, device)) {
    all.emplace_back();
    for (const Json& one : Json::parse(text)) all.back().push_back(offer_of(one));
  }
  return all;
}

// Which offers are sent: per rank, by the offer's index.
std::vector<std::vector<bool>> wanted(const std::vector<std::vector<Offer>>& offers) {
  std::set<std::string> seen;
  std::vector<std::vector<bool>> wants;
  for (const std::vector<Offer>& of_rank : offers) {
    wants.emplace_back();
    for (const Offer& offer : of_rank) {
      const bool copy = offer.key.phase == ParityPhase::kWeights;
      wants.back().push_back(!copy || seen.insert(offer.key.text() + offer.slice.text()).second);
    }
  }
  return wants;
}

int first_with_forward(const std::vector<std::vector<Offer>>& offers) {
  for (size_t rank = 0; rank < offers.size(); ++rank)
    for (const Offer& offer : offers[rank])
      if (offer.key.phase == ParityPhase::kForward) return static_cast<int>(rank);
  return -1;
}

at::Tensor as_bytes(const at::Tensor& value) { return value.contiguous().flatten().view(at::kByte); }

}  // namespace

TensorPieces gather_pieces(const TensorPieces& mine, Communicator& world, c10::Device device) {
  const std::vector<std::vector<Offer>> offers = all_offers(mine, world, device);
  const std::vector<std::vector<bool>> wants = wanted(offers);
  const int root = first_with_forward(offers), me = world.rank();
  TensorPieces all;
  if (root < 0) return all;
  std::vector<at::Tensor> own;
  for (const auto& [key, pieces] : mine)
    for (const TensorPiece& piece : pieces) own.push_back(piece.value);
  for (int rank = 0; rank < world.size(); ++rank) {
    if (me != root && me != rank) continue;
    const std::vector<Offer>& of_rank = offers[static_cast<size_t>(rank)];
    const std::vector<bool>& takes = wants[static_cast<size_t>(rank)];
    int64_t bytes = 0;
    for (size_t i = 0; i < of_rank.size(); ++i) bytes += takes[i] ? of_rank[i].bytes() : 0;
    if (bytes == 0) continue;
    std::vector<at::Tensor> parts;
    if (me == rank)
      for (size_t i = 0; i < of_rank.size(); ++i)
        if (takes[i]) parts.push_back(as_bytes(own[i]));
    if (me == rank && rank != root) world.send(at::cat(parts).to(device), root);
    if (me != root) continue;
    const at::Tensor buffer =
        rank == root ? at::cat(parts)
                     : world.recv(at::empty({bytes}, at::TensorOptions(at::kByte).device(device)), rank).to(at::kCPU);
    int64_t at_byte = 0;
    for (size_t i = 0; i < of_rank.size(); ++i) {
      if (!takes[i]) continue;
      const Offer& offer = of_rank[i];
      // Cloned because a view as another type needs an aligned address.
      const at::Tensor value = buffer.narrow(0, at_byte, offer.bytes()).clone().view(offer.type);
      all[offer.key].push_back({.rank = rank, .order = static_cast<int>(i), .slice = offer.slice, .value = value});
      at_byte += offer.bytes();
    }
  }
  return all;
}

}  // namespace ranklab

#include "core/parity/watch_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/base/text.h"
#include "core/comm/communicator.h"
#include "core/nn/scalar_type.h"
#include "core/nn/split_products.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/parity/microscope.h"
#include "core/parity/parity_record.h"
#include "core/runtime/text/gather_texts.h"
#include "core/sim/aten.h"
#include "core/sim/unseen_scope.h"

namespace ranklab {
namespace {

// Larger layers are not sent to one rank.
constexpr double kMostElements = 1 << 29;

// The slice relative to the microbatch: sequences are counted from its first one.
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

// Collects the pieces of some tensors from all ranks on the first rank that has a piece of phase kForward; RETURNS
// nothing on the other ranks. If several ranks hold copies of a weight, only the first rank's copy is sent. Cost: two
// all_gathers of a description of each rank's pieces, and a message from each rank that has some. Collective.
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

GlobalSlice shifted(GlobalSlice slice, int64_t first, int64_t sequences) {
  slice.shape[1] = sequences;
  for (int64_t& sequence : slice.positions[1]) sequence -= first;
  return slice;
}

}  // namespace

std::string why_not_alone(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  if (plan.precision != nullptr)
    return "quantized products use scales of a whole tensor, and each rank holds only a part";
  if (m.moe.balancing == LoadBalancing::kGlobalAuxLoss && plan.dp() > 1)
    return "the load-balancing loss covers the tokens of all replicas, and a layer sees only one replica's";
  const double elements = static_cast<double>(m.parameter_count()) / static_cast<double>(m.num_layers);
  if (elements >= kMostElements)
    return "a layer has " + human_count(elements) + " weights, more than one rank is given (" +
           human_count(kMostElements) + ")";
  return "";
}

WatchedLayer::WatchedLayer(SentinelContext& context, std::shared_ptr<ModelProvider> provider)
    : context_(context), provider_(std::move(provider)), possible_(why_not_alone(context.plan).empty()) {}

void WatchedLayer::choose(int64_t step, int64_t count) {
  const RunPlan& plan = context_.plan;
  const RandomStream stream(plan.config.seed, RandomPurpose::kSample, "watch");
  const auto draw = [&](int64_t which, int64_t below) {
    return static_cast<int64_t>(
        stream.below(static_cast<uint64_t>(2 * count + which), static_cast<uint64_t>(std::max<int64_t>(below, 1))));
  };
  step_ = step;
  layer_ = count % plan.config.model.num_layers;
  microbatch_ = draw(0, plan.microbatches_of(step));
  dp_rank_ = draw(1, plan.dp());
  first_sample_ = (dp_rank_ * plan.microbatches_of(step) + microbatch_) * plan.micro_batch_size;
  weights_.clear();
  loads_ = 0;
  documents_ = nullptr;
}

// Batches are loaded in the order of microbatches, once, or once by each of a rank's two stages.
void WatchedLayer::loaded(const Batch& batch, int64_t) {
  if (loads_++ % context_.plan.microbatches_of(step_) == microbatch_) documents_ = batch.documents;
}

bool WatchedLayer::takes(const TensorKey& key) const {
  const bool activation =
      key.phase == ParityPhase::kForward || (key.phase == ParityPhase::kBackward && key.kind != "grad");
  return possible_ && activation && belongs(key.name) && context_.ctx.coordinate(Axis::kDp) == dp_rank_;
}

void WatchedLayer::keep_weights(const std::string& path, ModulePass pass) {
  if (!possible_ || pass != ModulePass::kForward || path != this->path() || !weights_.empty()) return;
  if (context_.ctx.tracer().microbatch() != microbatch_) return;
  const UnseenScope unseen;
  const auto keep = [&](const std::string& name, const char* kind, GlobalSlice slice, const at::Tensor& value) {
    weights_[{step_, ParityPhase::kWeights, name, kind}].push_back(
        {.rank = context_.ctx.global_rank(),
         .slice = std::move(slice),
         .value = value.detach().flatten().to(at::kCPU, value.scalar_type(), false, true)});
  };
  for (const Parameter* parameter : context_.model.registry().parameters())
    if (belongs(parameter->name) && !is_freed(parameter->data))
      keep(parameter->name, "weight", parameter_slice(*parameter), parameter->data);
  for (const auto& [name, buffer] : context_.model.buffers())
    if (belongs(name)) keep(name, "buffer", whole_slice(buffer.sizes().vec()), buffer);
}

TensorPieces WatchedLayer::in_microbatch(const TensorPieces& mine) const {
  TensorPieces pieces = weights_;
  const int64_t sequences = context_.plan.micro_batch_size;
  for (const auto& [key, of_key] : mine) {
    if (!takes(key)) continue;
    for (TensorPiece piece : of_key) {
      piece.slice = shifted(std::move(piece.slice), first_sample_, sequences);
      pieces[key].push_back(std::move(piece));
    }
  }
  return pieces;
}

// The layer's input is the sum of the residual stream, recorded at the norm in front of the layer's first branch;
// without such a norm it is the input of that branch.
TensorKey WatchedLayer::input_of(const TensorPieces& pieces) const {
  const std::string first = path() + (context_.plan.config.model.has_attention(layer_) ? ".attention" : ".mlp");
  const TensorKey norm{step_, ParityPhase::kForward, first + "_norm", "residual stream"};
  return pieces.contains(norm) ? norm : TensorKey{step_, ParityPhase::kForward, first, "input"};
}

LayerVerdict WatchedLayer::compared(TensorPieces pieces, double balance_scale) {
  if (pieces.empty()) return {};
  if (!alone_) alone_ = std::make_unique<OneRankLayer>(context_.plan, provider_, context_.ctx.device());
  const LayerCase layer{.layer = layer_,
                        .step = step_,
                        .first_sample = first_sample_,
                        .balance_scale = balance_scale,
                        .documents = documents_,
                        .pieces = pieces,
                        .input = input_of(pieces),
                        .grad = {step_, ParityPhase::kBackward, path(), "grad_output"}};
  std::optional<ParityRecord> right = alone_->run(layer, 0);
  const SplitProducts in_another_order;
  std::optional<ParityRecord> moved = alone_->run(layer, 1);
  if (!right || !moved) return {};
  const ParityReference reference(std::move(*right), {std::move(*moved)});
  ParityRecord got{.title = "this run",
                   .type = scalar_type(context_.plan.config.element_dtype()),
                   .mesh = ParityMesh(context_.plan.mesh)};
  std::erase_if(pieces, [](const auto& one) { return one.first.phase == ParityPhase::kWeights; });
  got.tensors = std::move(pieces);
  const ParityResult result = compare_with_reference(got, reference);
  const TensorVerdict* worst = result.wrong() != nullptr ? result.wrong() : result.comparison.closest();
  if (worst == nullptr) return {};
  LayerVerdict verdict{.over = worst->worst.eps / worst->tolerance};
  if (result.wrong() == nullptr) return verdict;
  std::vector<std::string> ranks;
  for (const int rank : worst->wrong_ranks) ranks.push_back(std::to_string(rank));
  verdict.text = strprintf("%s (%s, microbatch %lld of dp rank %lld), %s %s: %.3g epsilons from what one rank computes",
                           worst->key.text().c_str(), std::string(name(worst->key.phase)).c_str(),
                           static_cast<long long>(microbatch_), static_cast<long long>(dp_rank_),
                           ranks.size() == 1 ? "rank" : "ranks", join(ranks, ", ").c_str(), worst->worst.eps);
  bool names_axis = false;
  for (const Explanation& why : result.why) {
    verdict.text += "; " + why.what;
    names_axis |= !why.axes.empty();
  }
  if (!names_axis) verdict.text += "; computed over " + axes_of_layer();
  return verdict;
}

// The axes whose ranks exchange something within a layer.
std::string WatchedLayer::axes_of_layer() const {
  std::vector<std::string> axes;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp})
    if (context_.ctx.size(axis) > 1) axes.emplace_back(name(axis));
  return axes.empty() ? "one rank" : join(axes, " and ");
}

LayerVerdict WatchedLayer::judge(const TensorPieces& mine, double balance_scale) {
  if (!possible_) return {};
  const UnseenScope unseen;
  const c10::Device device = context_.ctx.control_device();
  LayerVerdict verdict = compared(gather_pieces(in_microbatch(mine), context_.world, device), balance_scale);
  weights_.clear();
  const std::string text_of_rank = std::isnan(verdict.over) ? "" : strprintf("%.17g ", verdict.over) + verdict.text;
  for (const std::string& text : gather_texts(text_of_rank, context_.world, device)) {
    const size_t space = text.find(' ');
    if (space == std::string::npos) continue;
    verdict = {.over = std::strtod(text.c_str(), nullptr), .text = text.substr(space + 1)};
  }
  return verdict;
}

}  // namespace ranklab

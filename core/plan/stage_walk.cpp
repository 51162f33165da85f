#include "core/plan/stage_walk.h"

#include <algorithm>
#include <utility>

#include "core/plan/attention_walk.h"
#include "core/plan/expert_walk.h"

namespace ranklab {
namespace {

constexpr int64_t kIndexBytes = 8;  // of a token

}  // namespace

StageWalk::StageWalk(const StepShape& shape, int part, StepVisitor& visitor, LayerWalk::Arrived arrived,
                     UnitWalk* units)
    : s_(shape), part_(part), units_(units), w_(shape, visitor, std::move(arrived)), hidden_(shape.model.hidden_size) {}

void StageWalk::forward() {
  w_.begin(BackwardHalf::kWhole);
  const int64_t first = s_.first_layer(part_), end = first + s_.layers(part_);
  if (s_.is_first(part_)) with({"embedding"}, layer_unit(first), [&] { embedding_forward(); });
  for (const Piece& piece : pieces()) {
    with(units_of(piece), piece.end == end && s_.is_last(part_) ? "final" : layer_unit(piece.end), [&] {
      if (piece.again && piece.first > first) w_.kernel(3 * w_.stream_bytes());  // the sum is kept
      for (int64_t layer = piece.first; layer < piece.end; ++layer)
        layer_forward(layer, (layer > first || !s_.is_first(part_)) && !(piece.again && layer == piece.first));
    });
  }
  if (!s_.is_last(part_)) return;
  with(last_units(), "", [&] {
    w_.norm_forward(hidden_, true);
    head_forward();
    for (int64_t k = 0; k < s_.model.mtp_num_layers; ++k) prediction_forward(k);
  });
}

std::string StageWalk::layer_unit(int64_t layer) const {
  const int64_t first = s_.first_layer(part_);
  return layer >= first && layer < first + s_.layers(part_) ? "layers." + std::to_string(layer) : "";
}

std::vector<std::string> StageWalk::units_of(const Piece& piece) const {
  std::vector<std::string> units;
  for (int64_t layer = piece.first; layer < piece.end; ++layer) units.push_back(layer_unit(layer));
  return units;
}

// core/model/transformer.cpp: what follows the last layer.
std::vector<std::string> StageWalk::last_units() const {
  std::vector<std::string> units;
  if (s_.embedding_at_both_ends()) units.emplace_back("embedding");
  for (int64_t k = 0; k < s_.model.mtp_num_layers; ++k) units.push_back("mtp." + std::to_string(k));
  units.emplace_back("final");
  return units;
}

void StageWalk::run_backward(BackwardHalf half) {
  w_.begin(half);
  const int64_t first = s_.first_layer(part_);
  if (s_.is_last(part_)) {
    with(last_units(), layer_unit(first + s_.layers(part_) - 1), [&] {
      for (int64_t k = s_.model.mtp_num_layers; k-- > 0;) prediction_backward(k);
      head_backward();
      if (!s_.model.tie_embeddings || s_.num_stages() > 1) w_.arrive(ModulePart::kHead);
      w_.norm_backward(hidden_, false);
      w_.arrive(ModulePart::kFinalNorm);
    });
  }
  const std::vector<Piece> all = pieces();
  for (size_t i = all.size(); i-- > 0;) {
    with(units_of(all[i]), layer_unit(all[i].first - 1), [&] {
      if (all[i].again) piece_again(all[i], all[i].first > first);
      for (int64_t layer = all[i].end; layer-- > all[i].first;) layer_backward(layer);
    });
  }
  if (!s_.is_first(part_)) return;
  if (w_.input_half()) embedding_backward();
  w_.arrive(ModulePart::kEmbedding);
}

std::vector<StageWalk::Piece> StageWalk::pieces() const {
  std::vector<Piece> out;
  const int64_t first = s_.first_layer(part_), layers = s_.layers(part_);
  for (int64_t layer = 0; layer < layers;) {
    const int64_t again = s_.recompute.piece(layer, layers), end = layer + std::max<int64_t>(again, 1);
    out.push_back({first + layer, first + end, again > 0});
    layer = end;
  }
  return out;
}

// core/model/recompute.h: with the input gradients.
void StageWalk::piece_again(const Piece& piece, bool has_branch) {
  if (!w_.input_half()) return;
  w_.visitor().set_recomputing(true);
  for (int64_t layer = piece.first; layer < piece.end; ++layer) layer_forward(layer, layer > piece.first || has_branch);
  w_.visitor().set_recomputing(false);
}

void StageWalk::layer_forward(int64_t layer, bool adds_branch) {
  w_.norm_forward(hidden_, adds_branch);
  attention_forward(w_);
  w_.dropout();
  w_.norm_forward(hidden_, true);
  s_.model.is_moe_layer(layer) ? experts_forward(w_) : mlp_forward();
  w_.dropout();
}

void StageWalk::layer_backward(int64_t layer) {
  w_.dropout();
  s_.model.is_moe_layer(layer) ? experts_backward(w_) : mlp_backward();
  w_.norm_backward(hidden_, true);
  w_.arrive(ModulePart::kMlpNorm);
  w_.dropout();
  attention_backward(w_);
  w_.norm_backward(hidden_, true);
  w_.arrive(ModulePart::kAttentionNorm);
}

void StageWalk::mlp_forward() {
  w_.column_forward(hidden_, s_.up_width(), s_.model.add_bias);
  w_.activation_forward(w_.tokens(), s_.up_width());
  w_.row_forward(s_.ffn_width(), s_.model.add_bias);
}

void StageWalk::mlp_backward() {
  if (w_.weight_half()) w_.activation_forward(w_.tokens(), s_.up_width());  // computed again instead of kept
  w_.row_backward(s_.ffn_width(), s_.model.add_bias);
  w_.arrive(ModulePart::kMlpDown);
  if (w_.input_half()) w_.activation_backward(w_.tokens(), s_.up_width());
  w_.column_backward(hidden_, s_.up_width(), s_.model.add_bias);
  w_.arrive(ModulePart::kMlpUp);
}

void StageWalk::look_up() {
  const auto index = static_cast<double>(w_.tokens() * kIndexBytes);
  const double rows = w_.rows(w_.tokens(), hidden_);
  w_.kernel(index + 2 * rows);
  if (!w_.split()) return;
  w_.kernel(12 * index, 8);  // which tokens are this rank's
  w_.kernel(2 * rows);       // zeros for the others
  if (!w_.sharded()) w_.kernel(2 * rows);
  w_.reduce(hidden_);
}

void StageWalk::embedding_forward() {
  look_up();
  if (s_.model.position == PositionKind::kLearned) w_.kernel(2.5 * w_.stream_bytes());
  w_.dropout();
}

void StageWalk::embedding_backward() {
  w_.dropout();
  if (s_.model.position == PositionKind::kLearned) w_.kernel(2 * w_.stream_bytes(), 3);
  w_.gather(hidden_);
  w_.kernel(w_.rows(w_.tokens() + s_.vocab_width(), hidden_));
}

void StageWalk::head_forward() {
  w_.column_forward(hidden_, s_.vocab_width(), false, true);
  loss_forward();
}

void StageWalk::head_backward() {
  if (w_.input_half()) loss_backward();
  w_.column_backward(hidden_, s_.vocab_width(), false, true);
}

// Passes over the logits, and the kernels on one number a token beside them.
void StageWalk::loss_forward() {
  const double narrow = w_.rows(w_.tokens(), s_.vocab_width()), logits = narrow * wide();
  const auto index = static_cast<double>(w_.tokens() * kIndexBytes);
  if (wide() > 1) w_.kernel(narrow + logits);
  if (!w_.split()) return w_.kernel(3 * logits, 3);
  w_.kernel(8 * logits, 5);
  w_.kernel(24 * index, 12);
  const int64_t statistics = 3 * w_.tokens() * s_.dims.tp * s_.element_bytes() * wide();
  w_.call(Axis::kTp, Verb::kAllGather, statistics);
  w_.kernel(30 * index, 18);
}

void StageWalk::loss_backward() {
  const double narrow = w_.rows(w_.tokens(), s_.vocab_width()), logits = narrow * wide();
  if (wide() > 1) w_.kernel(narrow + logits);
  if (!w_.split()) return w_.kernel(5 * logits, 4);
  w_.kernel(2 * logits, 2);
  w_.kernel(8 * static_cast<double>(w_.tokens() * kIndexBytes), 6);
}

// DeepSeek-V3, arXiv 2412.19437, section 2.2: the next token's embedding joins the hidden state, a layer follows, then
// the model's head.
void StageWalk::prediction_forward(int64_t module) {
  look_up();
  w_.norm_forward(hidden_, false);
  w_.norm_forward(hidden_, false);
  w_.kernel(4 * w_.stream_bytes());
  w_.replicated_forward(2 * hidden_, hidden_);
  layer_forward(s_.model.num_layers + module, false);
  w_.norm_forward(hidden_, true);
  head_forward();
  w_.kernel(2.0 * static_cast<double>(w_.tokens() * kIndexBytes), 2);  // other targets, the sum of losses
}

void StageWalk::prediction_backward(int64_t module) {
  const double stream = 3 * w_.stream_bytes(), table = 3 * w_.rows(s_.vocab_width(), hidden_);
  if (w_.input_half()) w_.kernel(0, 2);
  head_backward();
  w_.norm_backward(hidden_, false);
  w_.arrive(ModulePart::kFinalNorm);
  const int64_t layer = s_.model.num_layers + module;
  if (s_.recompute.covers_mtp()) piece_again({layer, layer + 1, true}, false);
  layer_backward(layer);
  w_.replicated_backward(2 * hidden_, hidden_);
  w_.norm_backward(hidden_, false);
  w_.norm_backward(hidden_, false);
  w_.arrive(ModulePart::kMtpIn);
  if (w_.input_half()) {
    embedding_backward();
    w_.kernel(stream);  // gradients of the state, of the head and of the embedding are added to the model's
    if (s_.is_first(part_)) w_.kernel(table);
  }
  if (w_.weight_half()) w_.kernel(table);
  if (!s_.is_first(part_)) w_.arrive(ModulePart::kEmbedding);
}

}  // namespace ranklab

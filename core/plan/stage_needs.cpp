#include "core/plan/stage_needs.h"

#include <algorithm>

namespace ranklab {
namespace {

int64_t logits(const StepShape& s) { return s.tokens() * s.vocab_width(); }

// The loss holds the logits and their gradient (unsplit twice; of 16 bits in fp32), then the head their gradient alone.
BackwardMoment loss_moment(const StepShape& s) {
  const int64_t held = s.dims.tp == 1 ? 3 * logits(s) : 2 * logits(s) + s.stream();
  const int64_t elements = s.element_bytes() == 2 ? (s.dims.tp == 1 ? 6 : 7) * logits(s) : held;  // in fp32
  return {.kind = MomentKind::kLoss, .whole = elements, .split = elements};
}
BackwardMoment head_moment(const StepShape& s) {
  const int64_t elements = logits(s) + s.tokens() * s.model.hidden_size + 2 * s.stream();
  return {.kind = MomentKind::kHead, .whole = elements, .split = elements};
}

// The embedding, both norms' concatenation, the last norm and the logits of each MTP module, beside its layer.
int64_t prediction_elements(const StepShape& s) {
  return 3 * s.stream() + 2 * s.local_tokens() + norm_elements(s, s.model.hidden_size) + logits(s);
}

class Collector {
 public:
  explicit Collector(const StepShape& shape) : s_(shape) {}

  // Layers that are computed again together, or one that keeps what it needs.
  void add(int64_t layer, int64_t count, bool again) {
    Piece piece{layer, layer + count, {}, 0};
    for (int64_t i = 0; i < count; ++i) piece.memory += layer_memory(s_, layer + i);
    if (again) piece.memory = piece.memory.again(s_.stream());
    out_.per_layer = std::max(out_.per_layer, piece.memory.kept / count);
    out_.row_gradients += piece.memory.row_gradients;
    pieces_.push_back(piece);
  }
  // ... which the last of them keeps, too.
  void add_kept(int64_t elements) { pieces_.back().more += elements; }

  StageNeeds take(bool is_last) {
    for (const Piece& piece : pieces_) {
      out_.kept += piece.memory.kept + piece.more;
      out_.deferred += deferred(piece);
    }
    int64_t freed = 0, left = 0;
    if (is_last) {
      out_.moments = {loss_moment(s_), head_moment(s_)};
      left = logits(s_) + s_.stream();
      out_.deferred += left;
    }
    for (size_t i = pieces_.size(); i-- > 0;) {
      const Piece& piece = pieces_[i];
      const auto moment = [&](MomentKind kind, int64_t now) {
        out_.moments.push_back({kind, piece.first, piece.end, now - freed, now - freed + left});
      };
      moment(MomentKind::kLayers, piece.memory.temporary);
      moment(MomentKind::kProducts, piece.memory.at_products);
      freed += piece.memory.kept + piece.more;
      left += deferred(piece);
      moment(MomentKind::kLayers, piece.memory.at_attention);
    }
    return std::move(out_);
  }

 private:
  struct Piece {
    int64_t first, end;
    LayerMemory memory;
    int64_t more = 0;
  };
  int64_t deferred(const Piece& piece) const {
    return piece.memory.deferred + (s_.sharded_sequence() ? 0 : piece.memory.row_gradients);
  }

  const StepShape& s_;
  std::vector<Piece> pieces_;
  StageNeeds out_;
};

}  // namespace

StageNeeds stage_needs(const StepShape& s, const Schedule& schedule, int stage) {
  const int part = schedule.part(stage);
  const int64_t first = s.first_layer(part), layers = s.layers(part);
  Collector collector(s);
  for (int64_t layer = 0; layer < layers;) {
    const int64_t again = s.recompute.piece(layer, layers), count = std::max<int64_t>(again, 1);
    collector.add(first + layer, count, again > 0);
    layer += count;
  }
  for (int64_t k = 0; s.is_last(part) && k < s.model.mtp_num_layers; ++k) {
    collector.add(s.model.num_layers + k, 1, s.recompute.covers_mtp());
    collector.add_kept(prediction_elements(s));
  }
  StageNeeds needs = collector.take(s.is_last(part));
  const int64_t ends = (schedule.is_first(stage) ? 1 : 0) + (schedule.is_last(stage) ? 1 : 0);
  needs.kept += (2 - ends) * s.stream();
  needs.weight_pass = s.tokens() * std::max(s.ffn_width(), s.shared_ffn_width());
  return needs;
}

}  // namespace ranklab
